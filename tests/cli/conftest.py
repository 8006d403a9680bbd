"""Fixtures that several files of tests share."""
import pytest

from program import succeed


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """Headers of published models at full size, by name of their preset."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            succeed("synth", "--like", name, "--headers-only", "-o", folder / "model")
            made[name] = sorted(folder.glob("*.gguf"))[0]
        return made[name]

    return make
