"""scripts/common.sh and chroot.sh against machines we do not have: fakes first on the PATH."""
import os
import subprocess
import unittest

from tree import PROJECT, Tree

NOTHING_INSTALLED = "#!/bin/sh\nexit 1\n"
ALL_INSTALLED = "#!/bin/sh\necho installed\n"
SUDO = "#!/bin/sh\nshift\nexec \"$@\"\n"


def apt_cache_offering(*names):
    return ("#!/bin/sh\n[ \"$1\" = policy ] || exit 1\ncase \"$2\" in\n"
            f"{'|'.join(names)}) echo \"  Candidate: 1.0\" ;;\n"
            "virtual) echo \"  Candidate: (none)\" ;;\nesac\n")


def nvidia_smi(*capabilities):
    return "#!/bin/sh\n" + "".join(f"echo {c}\n" for c in capabilities)


class Scripts(unittest.TestCase):
    def bash(self, command, programs=(), only=False, script="common.sh", **environment):
        """Runs `command` after sourcing `script`; `only`: no programs but the fakes and few."""
        with Tree(dict(programs)) as root:
            for name in dict(programs):
                os.chmod(os.path.join(root, name), 0o755)
            if only:
                for name in ("bash", "sed", "sort", "head", "grep", "dirname", "paste"):
                    os.symlink(f"/usr/bin/{name}", os.path.join(root, name))
            path = root if only else root + ":" + os.environ["PATH"]
            # TOPKNOT_* of the caller (CI sets some) must not steer the test.
            clean = {k: v for k, v in os.environ.items() if not k.startswith("TOPKNOT_")}
            return subprocess.run(
                ["/bin/bash", "-c", f'source "{PROJECT}/scripts/{script}"; {command}'],
                env={**clean, "PATH": path, **environment},
                capture_output=True, text=True, check=False)

    def test_the_first_packaged_name_is_chosen(self):
        fakes = {"apt-cache": apt_cache_offering("pkg-config", "pkgconf")}
        command = "first_packaged virtual pkgconf pkg-config"
        self.assertEqual(self.bash(command, fakes).stdout, "pkgconf\n")
        fakes = {"apt-cache": apt_cache_offering("pkg-config")}
        self.assertEqual(self.bash(command, fakes).stdout, "pkg-config\n")

    def test_a_need_that_apt_does_not_offer_says_what_to_do(self):
        done = self.bash("echo 'no-such-package' | choose_packages",
                         {"apt-cache": apt_cache_offering("g++")})
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt offers no package for 'no-such-package': check the network", done.stderr)

    def test_apt_is_not_run_when_all_is_installed(self):
        done = self.bash("install_packages build test", {
            "dpkg-query": ALL_INSTALLED, "apt-get": "#!/bin/sh\necho apt ran >&2\nexit 1\n"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("apt ran", done.stderr)

    def test_only_what_is_missing_is_installed(self):
        dpkg = "#!/bin/sh\nfor a; do last=$a; done\n[ $last != ccache ] && echo installed\n"
        done = self.bash("install_packages build", {
            "dpkg-query": dpkg, "apt-cache": apt_cache_offering("ccache"),
            "sudo": SUDO, "apt-get": "#!/bin/sh\necho apt-get \"$@\"\n"})
        self.assertEqual(done.returncode, 0, done.stderr)
        install = [line for line in done.stderr.splitlines() if line.startswith("apt-get install")]
        self.assertRegex(install[0], r" ccache$")

    def test_no_network_is_one_sentence(self):
        done = self.bash("install_packages build", {
            "dpkg-query": NOTHING_INSTALLED, "apt-cache": apt_cache_offering("*"),
            "sudo": SUDO, "apt-get": "#!/bin/sh\nexit 100\n"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], r"^error: apt-get could not .*network")

    def test_another_system_is_told_what_to_do(self):
        done = self.bash("install_packages build", only=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not Debian or Ubuntu", done.stderr)
        self.assertEqual(self.bash("install_packages build", only=True,
                                   TOPKNOT_SKIP_PACKAGES="1").returncode, 0)

    def test_old_tools_are_refused(self):
        done = self.bash("check_tools", {"cmake": "#!/bin/sh\necho cmake version 3.22.1\n"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("cmake 3.22.1 is too old", done.stderr)
        done = self.bash("unset CXX; check_tools", {"g++": "#!/bin/sh\necho 11.4.0\n"})
        self.assertIn("g++ 11.4.0 is too old", done.stderr)

    def test_jobs_are_bounded_by_memory_and_never_none(self):
        meminfo = "#!/bin/sh\necho %d\n"
        jobs = lambda kib, cores: int(self.bash(
            "build_jobs", {"awk": meminfo % kib, "nproc": f"#!/bin/sh\necho {cores}\n"}).stdout)
        self.assertEqual(jobs(1_000_000, 4), 1)
        self.assertLessEqual(jobs(4_100_000, 64), 2)
        self.assertEqual(jobs(10**9, 1), 1)

    def cuda(self, programs, **environment):
        command = "choose_cuda; printf '%s\\n' \"${cuda_arguments[@]}\""
        done = self.bash(command, programs, only=True, **environment)
        return done.stdout.split("\n")[:-1], done

    # What common.sh looks for outside the PATH would answer for the fakes.
    @unittest.skipIf(os.path.exists("/usr/local/cuda/bin/nvcc"), "a CUDA toolkit is installed here")
    def test_without_a_toolkit_the_build_is_for_the_cpu(self):
        arguments, done = self.cuda({"nvidia-smi": nvidia_smi("9.0")})
        self.assertEqual(arguments, ["-DTOPKNOT_CUDA=OFF"])
        self.assertIn("no toolkit (nvcc)", done.stderr)
        _, done = self.cuda({}, TOPKNOT_CUDA="ON")
        self.assertIn("error: TOPKNOT_CUDA=ON, but there is no nvcc", done.stderr)

    def test_the_gpus_present_choose_the_architectures(self):
        programs = {"nvcc": "#!/bin/sh\n", "nvidia-smi": nvidia_smi("12.0", "9.0", "9.0")}
        arguments, _ = self.cuda(programs)
        self.assertEqual(arguments[0], "-DTOPKNOT_CUDA=ON")
        self.assertIn("-DTOPKNOT_CUDA_ARCHITECTURES=90;120", arguments)

    def test_a_toolkit_without_a_gpu_builds_gpu_code_only_when_asked(self):
        programs = {"nvcc": "#!/bin/sh\n", "nvidia-smi": "#!/bin/sh\necho no driver\nexit 9\n"}
        self.assertEqual(self.cuda(programs)[0], ["-DTOPKNOT_CUDA=OFF"])
        arguments, _ = self.cuda(programs, TOPKNOT_CUDA="ON", TOPKNOT_CUDA_ARCHITECTURES="90")
        self.assertIn("-DTOPKNOT_CUDA=ON", arguments)
        self.assertIn("-DTOPKNOT_CUDA_ARCHITECTURES=90", arguments)

    def test_off_is_off(self):
        programs = {"nvcc": "#!/bin/sh\n", "nvidia-smi": nvidia_smi("9.0")}
        self.assertEqual(self.cuda(programs, TOPKNOT_CUDA="OFF")[0], ["-DTOPKNOT_CUDA=OFF"])

    def test_the_mirror_is_found_where_one_of_the_lists_of_sources_is_missing(self):
        fake = {"cat": "#!/bin/sh\necho 'URIs: http://mirror.example/debian/'\nexit 1\n"}
        done = self.bash("mirror=$(find_mirror); echo $mirror", fake, script="chroot.sh")
        self.assertEqual((done.returncode, done.stdout), (0, "http://mirror.example/debian\n"))
        done = self.bash("find_mirror", script="chroot.sh", TOPKNOT_MIRROR="http://other.example")
        self.assertEqual(done.stdout, "http://other.example\n")

    def test_the_demo_names_a_missing_model_before_it_builds(self):
        demo = os.path.join(PROJECT, "scripts", "demo.sh")
        done = subprocess.run(["/bin/bash", demo, "/no/such.gguf"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: there is no model at '/no/such\.gguf': give ")


if __name__ == "__main__":
    unittest.main()
