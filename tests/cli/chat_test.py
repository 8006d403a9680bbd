"""`topknot run` as a conversation: through a pipe, and at a terminal with Ctrl-C."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from program import EMMA, EXIT, PROGRAM, TINY, TIMEOUT_SECONDS, succeed, topknot

GREEDY = ["run", "-m", TINY, "--temp", "0", "--no-think"]
LONG_ANSWER = ["run", "-m", str(TINY), "--temp", "0", "--no-think", "--ignore-eos"]


def test_lines_of_a_pipe_are_turns():
    done = succeed(*GREEDY, stdin=f"{EMMA}\nWhat is 8 plus 8?\n")
    assert done.out == "Jane Austen wrote Emma.\n8 plus 8 is 16.\n"
    assert "> " not in done.err


def test_a_closed_standard_input_is_an_empty_one():
    done = topknot("run", "-m", TINY, "-q", preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.out, done.err) == (0, "", "")


def test_a_closed_standard_output_is_an_error():
    done = topknot("backends", preexec_fn=lambda: os.close(1))
    assert done.returncode == EXIT["io"] and "standard output cannot be written" in done.err


def turns(*lines, options=()):
    done = succeed(*GREEDY, "--json", *options, stdin="".join(line + "\n" for line in lines))
    return [json.loads(line) for line in done.out.splitlines()]


def test_history_is_kept_and_its_cache_rows_are_used():
    first, second = turns("Belo is a baker and lives in the tower.", "Where does Belo live?")
    assert "tower" in second["text"]
    # The second prompt begins with the whole first one and its answer.
    assert second["cached_tokens"] > first["prompt_tokens"]
    assert first["cached_tokens"] == 0


def test_reset_forgets():
    first, second = turns(EMMA, "/reset", EMMA)
    assert second["prompt_tokens"] == first["prompt_tokens"]
    assert second["text"] == first["text"]


def test_system_message_of_the_command_line_and_of_the_command():
    plain, = turns("Where is Belo?")
    given, = turns("Where is Belo?", options=["-sys", "Belo lives in the tower."])
    set_later, = turns("/system Belo lives in the tower.", "Where is Belo?")
    assert given["prompt_tokens"] > plain["prompt_tokens"]
    assert set_later["tokens"] == given["tokens"]
    assert set_later["prompt_tokens"] == given["prompt_tokens"]


def test_turns_of_many_lines():
    joined, = turns("Who wrote\\", "Emma?")
    block, = turns('"""Who wrote', 'Emma?"""')
    assert joined["prompt_tokens"] == block["prompt_tokens"]
    assert joined["tokens"] == block["tokens"]


def test_commands():
    done = succeed(*GREEDY, stdin=f"/help\n/rest\n\n /odd\n/exit\n{EMMA}\n")
    assert "/system TEXT" in done.err
    assert "unknown command '/rest'" in done.err and "did you mean /reset" in done.err
    assert done.out.count("\n") == 1, "only the line with the space is a turn; none after /exit"


def test_an_error_ends_a_piped_conversation():
    done = topknot(*GREEDY, "-c", "64", stdin=f"{EMMA}\n{'word ' * 100}\n{EMMA}\n")
    assert done.returncode == EXIT["out_of_range"]
    assert done.out == "Jane Austen wrote Emma.\n"
    assert "/reset forgets" in done.err
    done = topknot(*GREEDY, stdin=b"Gr\xfc\xdfe\n")
    assert done.returncode == EXIT["usage"] and "byte 2" in done.err


class Terminal:
    """The program at a pseudo-terminal; `text` is all it has shown."""

    def __init__(self, *arguments):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])

    def wait_for(self, words, since=0):
        """Where the text goes on behind the first `words` after `since`."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while words not in self.text[since:]:
            assert time.monotonic() < end, f"no {words!r} in {self.text!r}"
            assert self.read(1), f"ended without {words!r}: {self.text!r}"
        return self.text.index(words, since) + len(words)

    def read(self, seconds):
        """False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # how Linux reports that the other side is closed
            return False
        self.text += data.decode("utf-8", "replace")
        return data != b""

    def type(self, text):
        os.write(self.fd, text.encode())

    def exit_code(self):
        end = time.monotonic() + TIMEOUT_SECONDS
        while self.read(0.2):
            assert time.monotonic() < end, f"still running: {self.text!r}"
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


CTRL_C, CTRL_D = "\x03", "\x04"


def test_a_terminal_gets_a_prompt_and_ctrl_d_leaves():
    terminal = Terminal(*GREEDY)
    at = terminal.wait_for("> ")
    terminal.type(EMMA + "\n")
    at = terminal.wait_for("Jane Austen wrote Emma.", at)
    terminal.wait_for("> ", at)
    terminal.type(CTRL_D)
    assert terminal.exit_code() == 0


def test_ctrl_c_drops_half_a_line_and_a_second_one_leaves():
    terminal = Terminal(*GREEDY)
    at = terminal.wait_for("> ")
    for _ in range(2):  # a line between two presses makes the next one the first again
        terminal.type("half a line")
        at = terminal.wait_for("half a line", at)
        terminal.type(CTRL_C)
        at = terminal.wait_for("Ctrl-C again or Ctrl-D leaves", at)
        at = terminal.wait_for("> ", at)
        terminal.type(EMMA + "\n")
        at = terminal.wait_for("Jane Austen wrote Emma.", at)
        at = terminal.wait_for("> ", at)
    terminal.type(CTRL_C)
    at = terminal.wait_for("leaves", at)
    terminal.wait_for("> ", at)
    terminal.type(CTRL_C)
    assert terminal.exit_code() == 0


def test_a_prompt_that_is_cancelled_leaves_no_turn():
    terminal = Terminal(*GREEDY, "--threads", "1")
    at = terminal.wait_for("> ")
    terminal.type('"""\n')
    for _ in range(60):
        at = terminal.wait_for(". ", at)
        terminal.type("word " * 200 + "\n")
    at = terminal.wait_for(". ", at)
    terminal.type('"""\n')
    terminal.wait_for('"""', at)
    at = len(terminal.text)
    time.sleep(0.3)
    terminal.type(CTRL_C)
    at = terminal.wait_for("generated: 0 tokens\r\n", at)
    at = terminal.wait_for("stop: cancelled", at)
    assert " at 0.0 tokens/s" not in terminal.text
    at = terminal.wait_for("> ", at)
    terminal.type(EMMA + "\n")
    at = terminal.wait_for("Jane Austen wrote Emma.", at)
    terminal.wait_for("prompt: 11 tokens", at)  # as when it is the first message
    terminal.type(CTRL_D)
    assert terminal.exit_code() == 0


def test_ctrl_c_ends_the_answer_only_and_the_part_stays_in_the_history():
    terminal = Terminal(*LONG_ANSWER)
    at = terminal.wait_for("> ")
    for _ in range(2):
        terminal.type("Tell me a story.\n")
        at = terminal.wait_for("\n", at)  # the echo
        while len(terminal.text) < at + 40:
            assert terminal.read(TIMEOUT_SECONDS)
        terminal.type(CTRL_C)
        at = terminal.wait_for("stop: cancelled", at)
        at = terminal.wait_for("> ", at)
    shown = re.findall(r"prompt: (\d+) tokens at \S+ tokens/s \((\d+) cached\)", terminal.text)
    (first, _), (second, cached) = [(int(tokens), int(rows)) for tokens, rows in shown]
    # An empty answer would make 2 * first - 2: the template begins with two tokens once.
    assert second > 2 * first - 2, "the partial answer was lost"
    assert cached >= first
    terminal.type(CTRL_D)
    assert terminal.exit_code() == 0


def test_ctrl_c_within_a_turn_of_many_lines_drops_that_turn():
    terminal = Terminal(*GREEDY)
    at = terminal.wait_for("> ")
    terminal.type("What is 8 plus 8? \\\n")
    at = terminal.wait_for(". ", at)
    terminal.type(CTRL_C)
    at = terminal.wait_for("> ", at)
    terminal.type(EMMA + "\n")
    terminal.wait_for("Jane Austen wrote Emma.", at)
    terminal.type("/exit\n")
    assert terminal.exit_code() == 0


def test_ctrl_c_ends_a_single_answer_with_its_text():
    process = subprocess.Popen([PROGRAM, *LONG_ANSWER, "-p", "Tell me a story."],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    begun = os.read(process.stdout.fileno(), 1 << 16)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130
    assert begun and (begun + rest).endswith(b"\n")
    assert b"stop: cancelled" in err


def test_errors_at_a_terminal_do_not_end_the_conversation():
    terminal = Terminal(*GREEDY, "-c", "64")
    at = terminal.wait_for("> ")
    terminal.type("word " * 100 + "\n")
    at = terminal.wait_for("longer than the context", at)
    at = terminal.wait_for("> ", at)
    terminal.type(EMMA + "\n")
    terminal.wait_for("Jane Austen wrote Emma.", at)
    terminal.type(CTRL_D)
    assert terminal.exit_code() == 0
