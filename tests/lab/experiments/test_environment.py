"""Which processes are known to be dead."""

import subprocess
import sys

from hopscope.lab.experiments import environment


def test_a_process_that_ended_is_dead_and_this_one_is_not() -> None:
    code = "from hopscope.lab.experiments import environment; print(environment.owner())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert environment.is_dead(ended.stdout.strip())
    assert not environment.is_dead(environment.owner())


def test_another_process_of_the_same_number_is_not_the_same() -> None:
    """Numbers are given again; without the beginning a killed command would seem to live on."""
    host, pid, began = environment.owner().rsplit("/", 2)
    assert environment.is_dead(f"{host}/{pid}/{int(began) - 1}")


def test_of_other_machines_nobody_knows() -> None:
    assert not environment.is_dead("elsewhere/999999999/1")


def test_versions_tell_of_what_is_installed() -> None:
    found = environment.versions(["hopscope", "no-such-package"])
    assert found.keys() == {"python", "hopscope"}
