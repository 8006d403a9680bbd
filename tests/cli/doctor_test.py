"""topknot doctor: rows, the report and its schema, exit codes. No times are asserted."""
import json
import os
import platform
import pwd
import re
import signal
import socket
import subprocess

import pytest

from program import EXIT, PROGRAM, TIMEOUT_SECONDS, TINY, succeed, topknot

COLUMNS = 100
FAILED = 1
KEYS = ["schema_version", "program", "date", "quick", "broken", "build", "system", "processor",
        "memory", "kernels", "cuda", "measured", "probes", "benchmark", "checks", "device"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """One examination, and the file it wrote."""
    path = tmp_path_factory.mktemp("doctor") / "machine.json"
    done = succeed("doctor", "--quick", "-m", TINY, "--report", path)
    return done, path


def load(report):
    return json.loads(report[1].read_text())


def test_rows(report):
    done, path = report
    lines = done.out.splitlines()
    assert max(len(line) for line in lines) <= COLUMNS
    names = [line[9:25].strip() for line in lines if re.match(r"(ok|note|problem) ", line)]
    for name in ["build", "system", "processor", "kernels", "memory", "memory rate",
                 "fp32 products", "decoding", "disk", "cpu_simd", "cpu_reference", "benchmark"]:
        assert name in names, done.out
    assert "nothing is broken" in lines[-1]
    assert "measuring memory bandwidth" in done.err and str(path) in done.err


def test_the_schema(report):
    got = load(report)
    assert list(got) == KEYS
    assert got["schema_version"] == 1 and got["program"] == "topknot doctor"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", got["date"]) and got["quick"] is True
    assert got["broken"] is False
    assert set(got["build"]) == {"version", "commit", "compiler", "build_type",
                                 "cuda_architectures"}
    for name in ["one_thread", "all_threads"]:
        rate = got["measured"]["memory"][name]
        assert set(rate) == {"bytes_per_second", "threads", "bytes", "rounds"}
        assert rate["bytes_per_second"] > 0 and rate["rounds"] >= 3
    runs = [each["name"] for each in got["kernels"] if each["runs"]]
    assert [each["kernels"] for each in got["measured"]["products"]] == runs
    assert {each["type"] for each in got["measured"]["decoding"]} >= {"Q4_K", "Q8_0"}
    assert got["measured"]["disk"]["bytes"] == TINY.stat().st_size
    probed = {(each["backend"], each["kernels"], each["selection"]) for each in got["probes"]}
    assert len(probed) == len(got["probes"]) == 2 * 2 * len(runs), "each backend, set, selection"
    assert all(each["passed"] and each["largest_difference"] <= each["limit"]
               for each in got["probes"])
    assert got["benchmark"]["tokens_per_second"] > 0 and got["benchmark"]["sparse"] is True
    assert got["benchmark"]["least_seconds_per_token"] > 0
    for check in got["checks"]:
        assert set(check) == {"name", "verdict", "text", "remedy"}
        assert check["verdict"] in ("ok", "note", "problem")
        assert check["remedy"] or check["verdict"] == "ok"


def test_json_is_the_report_on_one_line():
    done = succeed("doctor", "--quick", "--json")
    assert done.out.count("\n") == 1
    got = json.loads(done.out)
    assert list(got) == KEYS
    assert got["measured"]["disk"] is None, "no file was named"


def test_it_names_nobody(report, tmp_path):
    text = report[1].read_text()
    user = pwd.getpwuid(os.getuid()).pw_name
    private = [socket.gethostname(), platform.node(), os.path.expanduser("~"), str(tmp_path.parent),
               TINY.name, os.getcwd(), "/tmp"]
    if user != "root":  # a word that stands for nobody
        private.append(user)
    for word in private:
        assert not word or word == "/" or word not in text, word
    assert not re.search(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", text, re.IGNORECASE), "a network address"
    for path in ["/sys/class/dmi/id/product_serial", "/sys/class/dmi/id/product_uuid",
                 "/etc/machine-id"]:
        try:
            with open(path, encoding="utf-8") as file:
                number = file.read().strip()
        except OSError:
            continue
        assert not number or number not in text, path


def test_a_plan_takes_it(report):
    got = load(report)
    plan = json.loads(succeed("plan", "-m", TINY, "--devices", report[1], "--device", "cpu",
                              "--json").out)
    assert plan["complete"] is True
    assert plan["machine"]["name"] == got["device"]["name"]
    assert plan["price"]["decode"][0]["seconds"] > 0, "the measured rates are known to it"
    assert "memory_bytes_per_second" not in plan["price"]["unknown"]
    assert "operations_per_second.fp32" not in plan["price"]["unknown"]


def test_its_device_alone_is_a_machine_file(report, tmp_path):
    got = load(report)
    alone = tmp_path / "mine.json"
    alone.write_text(json.dumps(got["device"]))
    sources = got["device"]["sources"]
    assert got["date"] in sources["host.memory_bytes_per_second"]
    assert sources["host.memory_bytes_per_second"].startswith("measured by topknot doctor on ")
    rate = got["measured"]["memory"]["all_threads"]["bytes_per_second"]
    assert got["device"]["host"]["memory_bytes_per_second"] == rate
    both = [succeed("plan", "-m", TINY, "--devices", file, "--device", "cpu", "--json").out
            for file in (alone, report[1])]
    assert both[0] == both[1]


def test_a_broken_report_names_the_key(report, tmp_path):
    got = load(report)
    got["device"]["host"]["cores"] = "many"
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(got))
    done = topknot("plan", "-m", TINY, "--devices", broken)
    assert done.returncode == EXIT["corrupt"]
    assert "device.host.cores" in done.err


def test_a_report_is_not_written_over_a_file(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text("mine")
    done = topknot("doctor", "--quick", "--report", path)
    assert done.returncode == EXIT["usage"] and "--force" in done.err
    assert "measuring" not in done.err, "told before the work"
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["machine.json"]
    succeed("doctor", "--quick", "--report", path, "--force")
    assert json.loads(path.read_text())["schema_version"] == 1
    assert os.listdir(tmp_path) == ["machine.json"]


def test_errors_of_the_question(tmp_path):
    assert topknot("doctor", "--report", tmp_path / "none" / "x.json").returncode == EXIT["io"]
    done = topknot("doctor", "-m", tmp_path / "none.gguf", "--report", tmp_path / "machine.json")
    assert done.returncode == EXIT["not_found"]
    assert os.listdir(tmp_path) == [], "nothing is left of the report"
    assert topknot("doctor", "extra").returncode == EXIT["usage"]


def test_what_is_broken_is_the_exit_code(tmp_path):
    """A folder for temporary files that is not there: the benchmark's model cannot be made."""
    path = tmp_path / "machine.json"
    missing = tmp_path / "nowhere"
    done = topknot("doctor", "--quick", "--report", path,
                   env={**os.environ, "TMPDIR": str(missing)})
    assert done.returncode == FAILED, done.err
    assert re.search(r"^problem +benchmark", done.out, re.MULTILINE), done.out
    assert "TMPDIR" in done.out and "1 broken" in done.out
    got = json.loads(path.read_text())
    assert got["broken"] is True
    assert got["benchmark"]["error"]["code"] == "io"
    assert str(missing) not in path.read_text()


def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path):
    succeed("doctor", "--quick", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert os.listdir(tmp_path) == []


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path):
    process = subprocess.Popen([PROGRAM, "doctor", "--report", tmp_path / "machine.json"],
                               env={**os.environ, "TMPDIR": str(tmp_path)},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"measuring" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 130, err
    assert out == b"" and b"cancelled" in err
    assert os.listdir(tmp_path) == []


def test_a_report_of_a_later_schema_is_refused_by_plan(report, tmp_path):
    later = tmp_path / "later.json"
    later.write_text(json.dumps({**load(report), "schema_version": 99}))
    done = topknot("plan", "-m", TINY, "--devices", later)
    assert done.returncode != 0 and "schema_version: needs 1, found 99" in done.err
