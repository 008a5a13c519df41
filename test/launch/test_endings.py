"""How a job ends, in every way in which a rank or mpiexec can end: status, message, no process left."""

import os
import re
import signal
import sys
import time

import harness
import pytest

SLEEP = "sleep 1000"


def one_line(text):
    return text.count("\n") == 1


def test_the_status_of_the_first_failing_rank_is_the_jobs(launch, tmp_path):
    # Rank 1 fails once the last rank runs: the message counts ranks that had not been started apart.
    last = tmp_path / "last"
    failing = f"until [ -e {last} ]; do sleep 0.01; done; exit 42"
    script = f"[ $NEAR_BOOT_RANK = 2 ] && touch {last}; [ $NEAR_BOOT_RANK = 1 ] && {{ {failing}; }}; sleep 1000"
    result = launch("-n", "3", "--oversubscribe", "sh", "-c", script)
    assert result.status == 42 and one_line(result.err), result.report()
    assert re.search(r"rank 1 \(sh, pid \d+\) exited with status 42; 2 other ranks were ended with it", result.err)


@pytest.mark.parametrize("name", ["KILL", "SEGV", "BUS", "ABRT", "TERM"])
def test_a_signal_is_128_more_and_has_a_likely_cause(launch, name):
    result = launch("-n", "2", "sh", "-c", f"[ $NEAR_BOOT_RANK = 1 ] && kill -{name} $$; sleep 1000")
    number = signal.Signals[f"SIG{name}"]
    assert result.status == 128 + number and one_line(result.err), result.report()
    assert f"signal {int(number)} (SIG{name}); likely cause: " in result.err


def test_success_is_silent(launch):
    result = launch("-n", "2", "true")
    assert (result.status, result.out, result.err) == (0, "", "")


def test_the_others_are_ended_even_when_they_ignore_sigterm(launch):
    script = "[ $NEAR_BOOT_RANK = 1 ] && { sleep 0.3; exit 1; }; trap '' TERM; sleep 1000 & wait; sleep 1000"
    result = launch("-n", "2", "sh", "-c", script)
    assert result.status == 1 and result.seconds < 20


def test_a_rank_may_tidy_up_on_sigterm(launch):
    script = "[ $NEAR_BOOT_RANK = 1 ] && { sleep 0.5; exit 1; }; trap 'echo tidy; exit' TERM; sleep 1000 & wait"
    assert "tidy" in launch("-n", "2", "sh", "-c", script).out


def test_what_a_rank_leaves_running_may_end(launch, tmp_path):
    # In the background, with output of its own: nobody but mpiexec can wait for it.
    later = f"{{ sleep 4; echo done >>{tmp_path}/left; }} >/dev/null 2>&1 &"
    result = launch("-n", "2", "--oversubscribe", "sh", "-c", later)
    assert result.status == 0 and (tmp_path / "left").read_text() == "done\n" * 2, result.report()
    assert re.fullmatch(r"mpiexec: note: all ranks have ended; waiting up to 10 s for processes that they started: "
                        r"s\w+ \(pid \d+\), .*\n", result.err), result.report()


def test_what_a_rank_leaves_running_is_ended_in_the_end(launch):
    # The fixture checks that nothing survives.
    result = launch("-n", "2", "sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 0")
    assert result.status == 0 and "ending the processes that they left running: sleep (pid " in result.err, result.report()


def test_an_interrupt_ends_what_ranks_have_left_running(start):
    job = start("-n", "1", "--oversubscribe", "sh", "-c", "sleep 1000 & exit 0")
    job.wait_for("sleep", 1)
    assert job.process.stderr.readline().startswith("mpiexec: note: all ranks have ended; waiting")
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 0


def test_a_timeout_is_status_124_with_a_table(launch):
    result = launch("-n", "2", "--timeout", "0.5", "sleep", "1000")
    assert result.status == 124 and "before MPI_Init" in result.err and "--timeout" in result.err, result.report()
    assert launch("-n", "1", "sleep", "1000", env={"MPIEXEC_TIMEOUT": "1"}).status == 124


# A rank that saves its work for some seconds when it gets a signal.
SAVES = """
import signal, sys, time
def save(*_):
  time.sleep({1})
  print("saved")
  sys.exit(3)
signal.signal({0}, save)
print("waiting")
while True: time.sleep(1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ranks_get_the_signal_and_may_save_their_work(start, number):
    job = start("-n", "2", "--oversubscribe", sys.executable, "-u", "-c", SAVES.format(int(number), 2))
    assert [job.process.stdout.readline() for _ in range(2)] == ["waiting\n"] * 2
    job.signal(number)
    status, out, err = job.finish()
    assert (status, out) == (128 + number, "saved\n" * 2), (status, out, err)
    assert f"2 ranks still run after {number.name}" in err and err.endswith(f"ended by {number.name}; 2 ranks were ended with it\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_mpiexec_ends_everything(start, number):
    job = start("-n", "2", "sh", "-c", SLEEP + "; true")
    job.wait_for("sleep", 2)
    job.signal(number)
    status, _, err = job.finish()
    assert status == 128 + number and f"ended by {number.name}" in err


def test_ctrl_c_reaches_mpiexec_through_its_group(start):
    job = start("-n", "2", "sh", "-c", SLEEP + "; true")
    job.wait_for("sleep", 2)
    os.killpg(job.pid, signal.SIGINT)
    assert job.finish()[0] == 130


def test_a_second_ctrl_c_does_not_wait(start):
    job = start("-n", "2", "--oversubscribe", sys.executable, "-u", "-c", SAVES.format(int(signal.SIGINT), 1000))
    assert [job.process.stdout.readline() for _ in range(2)] == ["waiting\n"] * 2
    job.signal(signal.SIGINT)
    assert "2 ranks still run after SIGINT" in job.process.stderr.readline()
    began = time.monotonic()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130 and time.monotonic() - began < 20


def test_ranks_that_ignore_a_signal_get_sigterm(start):
    job = start("-n", "2", "sh", "-c", "trap '' INT; sleep 1000; true")
    job.wait_for("sleep", 2)
    began = time.monotonic()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130 and time.monotonic() - began < 20


def test_a_program_behind_a_shell_may_save_its_work(start, compiled):
    # The shell ends at once.
    job = start("-n", "2", "--oversubscribe", "sh", "-c", f"{compiled('end_badly')} saves; true")
    assert [job.process.stdout.readline() for _ in range(2)] == ["waiting\n"] * 2
    job.signal(signal.SIGTERM)
    status, out, err = job.finish()
    assert (status, out) == (128 + signal.SIGTERM, "saved\n" * 2), (status, out, err)


KILLED = "killed by a user, by a batch system or for lack of memory"


@pytest.mark.parametrize("whole_group", [False, True])
def test_killing_mpiexec_ends_ranks_and_their_children(start, whole_group):
    job = start("-n", "2", "--oversubscribe", "sh", "-c", "sh -c 'setsid sleep 1000; true' & sleep 1000; true")
    job.wait_for("sleep", 4)
    (os.killpg if whole_group else os.kill)(job.pid, signal.SIGKILL)
    job.process.wait(30)
    assert not harness.survivors(job.mark)
    # The supervisor, which outlives mpiexec for a moment, reports why the job ended.
    assert job.process.stderr.read() == f"mpiexec: {KILLED}; 2 ranks were ended with it\n"


def test_killing_the_supervisor_ends_ranks_and_their_children(start):
    job = start("-n", "2", "--oversubscribe", "sh", "-c", "sh -c 'setsid sleep 1000; true' & sleep 1000; true")
    job.wait_for("sleep", 4)
    supervisor = next(pid for pid in job.named("mpiexec") if pid != job.pid)
    os.kill(supervisor, signal.SIGKILL)
    status, _, err = job.finish()
    assert status == 137 and "supervising process" in err


def test_user_signals_are_handed_on(start):
    job = start("-n", "2", "sh", "-c", "trap 'echo got' USR1; sleep 1000 & while :; do wait $!; done")
    job.wait_for("sleep", 2)
    job.signal(signal.SIGUSR1)
    got = [job.process.stdout.readline(), job.process.stdout.readline()]
    assert got == ["got\n"] * 2


def test_stopping_mpiexec_stops_the_ranks(start):
    job = start("-n", "2", "sleep", "1000")
    ranks = job.wait_for("sleep", 2)

    def states(wanted):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = {open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] for pid in (*ranks, job.pid)}
            if found == set(wanted):
                return True
            time.sleep(0.02)
        return False

    job.signal(signal.SIGTSTP)
    assert states("T")
    job.signal(signal.SIGCONT)
    assert states("S")


def test_an_mpiexec_inside_a_rank_is_a_job_of_its_own(launch, prefix):
    result = launch("-n", "2", prefix / "bin/mpiexec", "-n", "1", "sh", "-c", "echo $NEAR_BOOT_RANK/$NEAR_BOOT_SIZE")
    assert result.out == "0/1\n0/1\n", result.report()


def test_many_ranks_need_many_descriptors_and_get_them(prefix, nothing_left):
    limited = ["sh", "-c", "ulimit -Sn 256; exec \"$@\"", "sh"]
    result = nothing_left([*limited, prefix / "bin/mpiexec", "--oversubscribe", "-n", 200, "sh", "-c", "ulimit -Sn"])
    assert result.status == 0 and result.out == "256\n" * 200, result.report()


def test_closed_standard_descriptors_do_no_harm(prefix, nothing_left):
    result = nothing_left(["sh", "-c", f"exec <&- >&-; {prefix}/bin/mpiexec -n 2 sh -c 'echo $NEAR_BOOT_RANK >&2'"])
    assert result.status == 0 and sorted(result.err.split()) == ["0", "1"], result.report()


def test_running_out_of_memory_is_named(prefix, nothing_left, small_memory_group):
    hog = "import os, time\nif os.environ['NEAR_BOOT_RANK'] == '1': x = bytearray(1 << 30)\ntime.sleep(100)"
    enter = ["sh", "-c", f"echo $$ >{small_memory_group}/cgroup.procs && exec \"$@\"", "sh"]
    result = nothing_left([*enter, prefix / "bin/mpiexec", "-n", 2, sys.executable, "-c", hog])
    assert result.status == 137 and "out of memory" in result.err and "200 MiB" in result.err, result.report()


@pytest.mark.parametrize("way, status, message", [
    ("abort", 7, r"rank 1 \(end_badly\) called MPI_Abort with code 7; 2 other"),
    ("abort-0", 1, r"rank 1 \(end_badly\) called MPI_Abort with code 0; 2 other"),
    ("kill", 137, r"rank 1 \(end_badly, pid \d+\) was ended by signal 9 \(SIGKILL\); likely cause: .*2 other"),
    ("fault", 139, r"rank 1 .* signal 11 \(SIGSEGV\)"),
    ("exit", 3, r"rank 1 .* exited with status 3"),
    ("no-finalize", 1, r"rank 1 .* exited with status 0 after MPI_Init, but without MPI_Finalize"),
    ("without-init", 1, r"rank 1 .* exited with status 0 without calling MPI_Init, which other ranks wait in"),
    ("in-recv", 142, r"rank 1 .* signal 14 \(SIGALRM\) in MPI_Recv, rank 2, tag 7"),
    ("after-finalize", 5, r"rank 1 .* exited with status 5 after MPI_Finalize$"),
])
def test_one_message_says_what_happened_to_an_mpi_rank(launch, compiled, way, status, message):
    result = launch("-n", "3", "--oversubscribe", compiled("end_badly"), way)
    assert result.status == status, result.report()
    said = [line for line in result.err.splitlines() if line.startswith("mpiexec: ")]
    assert len(said) == 1 and re.search(message, said[0]), result.report()
    assert result.out == ("last words" if way == "abort" else "")


def test_a_status_after_finalize_does_not_end_others_that_have_called_it(launch, compiled):
    # They write results.
    result = launch("-n", "3", "--oversubscribe", compiled("end_badly"), "late")
    rank = r"mpiexec: rank 1 \(end_badly, pid \d+\) exited with status 5 after MPI_Finalize"
    assert result.status == 5 and result.out == "results\n" * 2, result.report()
    assert re.fullmatch(f"{rank}; the other ranks go on\n{rank}\n", result.err), result.report()


def test_a_status_after_finalize_ends_others_that_have_not_called_it(launch, compiled):
    # A program in Python ends like this after an exception, and the others wait for it.
    result = launch("-n", "3", "--oversubscribe", compiled("end_badly"), "early")
    message = r"mpiexec: rank 1 \(end_badly, pid \d+\) exited with status 5 after MPI_Finalize; 2 other ranks were ended with it\n"
    assert result.status == 5 and re.fullmatch(message, result.err), result.report()


def test_the_mpi_process_behind_a_wrapper_is_watched(launch, compiled):
    # The wrapper would sleep forever.
    result = launch("-n", "2", "sh", "-c", f"{compiled('end_badly')} kill; sleep 1000")
    assert result.status != 0 and "rank 1" in result.err and result.seconds < 30, result.report()


def test_the_mpi_process_in_a_process_namespace_is_watched(launch, compiled):
    script = f"{compiled('end_badly')} kill; sleep 1000"
    result = launch("-n", "2", "unshare", "-rpf", "--mount-proc", "sh", "-c", script)
    if "unshare" in result.err and "rank" not in result.err:
        pytest.skip("this machine does not allow this user to create a process namespace")
    assert result.status != 0 and "rank 1" in result.err, result.report()


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_wrapper_that_forks_and_ends_does_no_harm(launch, compiled, ranks):
    # setsid forks, since a rank is a process group leader; the parent ends at once.
    result = launch("-n", ranks, "setsid", compiled("end_badly"), "well", "1")
    assert (result.status, result.err) == (0, ""), result.report()
    assert result.out.count("well") == ranks


def test_the_end_of_a_process_left_by_a_forking_wrapper_is_the_ranks(launch, compiled):
    result = launch("-n", "3", "--oversubscribe", "setsid", compiled("end_badly"), "exit")
    assert result.status == 3 and re.search(r"rank 1 .* exited with status 3; 2 other", result.err), result.report()


# Wrappers in Python that end successfully, SECONDS after PROGRAM: the first leaves PROGRAM as a zombie to the process
# that inherits it; under the second, PROGRAM is an orphan, whose end mpiexec sees while the wrapper lives.
LEAVES_A_ZOMBIE = """
import os, sys, time
if (child := os.fork()) == 0: os.execv(sys.argv[2], sys.argv[2:])
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
time.sleep(float(sys.argv[1]))
"""
OUTLIVES_AN_ORPHAN = """
import os, sys, time
tell, told = os.pipe()[::-1]
if (child := os.fork()) == 0:
    if (grandchild := os.fork()) == 0: os.execv(sys.argv[2], sys.argv[2:])
    os.write(tell, str(grandchild).encode())
    os._exit(0)
os.waitpid(child, 0)
orphan = os.read(told, 20).decode()
while os.path.exists("/proc/" + orphan): time.sleep(0.001)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("way, status", [("exit", 3), ("kill", 137), ("after-finalize", 5)])
@pytest.mark.parametrize("wrapper", [LEAVES_A_ZOMBIE, OUTLIVES_AN_ORPHAN], ids=["zombie", "orphan"])
@pytest.mark.parametrize("seconds", [0, 0.03, 1])
def test_the_end_of_a_process_counts_even_before_that_of_its_forking_wrapper(launch, compiled, wrapper, seconds,
                                                                                 way, status):
    result = launch("-n", "3", "--oversubscribe", sys.executable, "-c", wrapper, seconds, compiled("end_badly"), way)
    said = "was ended by signal 9" if way == "kill" else f"exited with status {status}"
    assert result.status == status and re.search(f"rank 1 .* {said}", result.err), result.report()


def test_the_status_of_a_wrapper_that_waits_for_its_mpi_process_counts(launch, compiled):
    result = launch("-n", "3", "--oversubscribe", "sh", "-c", f"{compiled('end_badly')} after-finalize; sleep 0.2; exit 0")
    assert (result.status, result.err) == (0, ""), result.report()


# Ends while its grandchild, PROGRAM, is inside MPI; the process between them gets PROGRAM's status and hides it.
LEAVES_SOMEBODY_ELSES_CHILD = """
import os, subprocess, sys, time
tell, told = os.pipe()[::-1]
if os.fork() == 0:
    program = subprocess.Popen(sys.argv[1:])
    os.write(tell, str(program.pid).encode())
    program.wait()
    time.sleep(0.3)
    os._exit(0)
name = "/proc/" + os.read(told, 20).decode() + "/comm"
while open(name).read() != "in-mpi\\n": time.sleep(0.001)
"""


def test_mpiexec_does_not_wait_for_an_end_that_another_process_was_told(launch, compiled):
    wrapped = [sys.executable, "-c", LEAVES_SOMEBODY_ELSES_CHILD, compiled("end_badly")]
    result = launch("-n", "3", "--oversubscribe", *wrapped, "well", "1")
    assert (result.status, result.err) == (0, "") and result.out.count("well") == 3, result.report()
    # The signal is known only if mpiexec looked while the process was a zombie.
    result = launch("-n", "3", "--oversubscribe", *wrapped, "in-recv")
    unknown = result.status == 1 and "the MPI process of rank 1" in result.err
    assert unknown or (result.status == 142 and "rank 1" in result.err), result.report()


def test_a_forking_wrapper_of_something_else_is_without_init(launch, compiled):
    # Reported only when no process is left that could still call MPI_Init.
    script = "[ $NEAR_BOOT_RANK = 0 ] && exec \"$0\" well; (sleep 1; echo left) & exit 0"
    result = launch("-n", "2", "sh", "-c", script, compiled("end_badly"))
    assert result.status == 1 and result.out == "left\n", result.report()
    assert "without calling MPI_Init" in result.err, result.report()


def test_a_rank_is_one_mpi_program_only(launch, compiled):
    result = launch("-n", "2", "sh", "-c", "\"$0\" well && \"$0\" well", compiled("end_badly"))
    assert result.status != 0 and "a rank can be one MPI program only" in result.err, result.report()


def test_a_program_that_a_rank_starts_is_a_singleton_once_the_variables_are_gone(launch, compiled):
    clean = "env -u NEAR_BOOT_VERSION -u NEAR_BOOT_SEGMENT -u NEAR_BOOT_LAUNCHER -u NEAR_BOOT_RANK -u NEAR_BOOT_SIZE " \
            "-u NEAR_BOOT_APPLICATION -u NEAR_BOOT_BINDING"
    result = launch("-n", "2", "sh", "-c", f"\"$0\" well && {clean} \"$0\" well", compiled("end_badly"))
    assert result.status == 0, result.report()


def test_a_wrapper_that_closes_every_descriptor_does_no_harm(launch, compiled):
    script = f"for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; exec {compiled('end_badly')} well"
    result = launch("-n", "2", "bash", "-c", script)
    assert result.status == 0, result.report()


@pytest.mark.parametrize("ranks, call, says", [
    (2, "barrier", "rank 0 waits in MPI_Barrier on MPI_COMM_WORLD; rank 1 has called MPI_Finalize"),
    (2, "send", "rank 0 waits in MPI_Ssend on MPI_COMM_WORLD; rank 1 has called MPI_Finalize"),
    (2, "other", "rank 0 waits in MPI_Recv; rank 1 has called MPI_Finalize"),
    (3, "barrier", "rank 0 waits in MPI_Barrier on MPI_COMM_WORLD and 1 other waits too; rank 1 has called MPI_Finalize"),
    (3, "busy", "rank 0 waits in MPI_Recv on MPI_COMM_WORLD; rank 1 has called MPI_Finalize"),
])
def test_waiting_for_a_rank_that_has_finalized_is_reported_once(launch, compiled, ranks, call, says):
    result = launch("-n", ranks, "--oversubscribe", "--timeout", "7", compiled("waits_for_a_finalized_rank"), call)
    assert result.status == 124, result.report()
    assert [line for line in result.err.splitlines() if "note" in line and says in line], result.report()
    assert result.err.count("note: ") == 1, result.report()


@pytest.mark.parametrize("options, call", [([], "slow"), (["-q", "--timeout", "6"], "barrier")])
def test_waiting_for_a_slow_rank_is_not_reported(launch, compiled, options, call):
    result = launch("-n", 3, "--oversubscribe", *options, compiled("waits_for_a_finalized_rank"), call)
    assert "note: " not in result.err and (result.status == 0 or options), result.report()


def test_a_timeout_shows_what_each_mpi_rank_waits_for(launch, compiled):
    result = launch("-n", "2", "--timeout", "1", compiled("end_badly"), "hang")
    assert result.status == 124, result.report()
    assert len(re.findall(r"running .* MPI_Recv, rank [01], tag 7", result.err)) == 2, result.report()


def test_near_top_shows_how_many_messages_came_before_their_receives(start, prefix, compiled):
    job = start("-n", "2", compiled("messages_before_their_receives"), "hang")
    job.wait_for("all-here", 2)
    seen = harness.run([prefix / "bin/near", "top", "--job", job.pid, "--once"])
    assert re.search(r"^ +rank .* sent +unexpected +doing\n +0 .* B +7  MPI_Recv", seen.out, re.M), seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_near_top_shows_a_running_job(start, prefix, compiled):
    job = start("-n", "2", compiled("end_badly"), "hang")
    job.wait_for("in-mpi", 2)
    deadline = time.monotonic() + 20
    while True:
        # Prints once, since this is not a terminal.
        seen = harness.run([prefix / "bin/near", "top", "--job", job.pid])
        if seen.out.count("MPI_Recv") == 2:
            break
        assert seen.status == 0 and time.monotonic() < deadline, seen.report()
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_near_top_refuses_a_process_that_is_not_a_job(prefix):
    seen = harness.run([prefix / "bin/near", "top", "--once", "--job", os.getpid()])
    assert seen.status == 1 and "not one of your running NearMPI jobs" in seen.err


def test_near_offers_the_nearest_word(prefix):
    seen = harness.run([prefix / "bin/near", "covrage"])
    assert seen.status == 2 and "did you mean coverage?" in seen.err


def test_near_says_what_it_expects(prefix):
    seen = harness.run([prefix / "bin/near", "foo"])
    assert seen.status == 2 and "did you mean" not in seen.err and "near --help" in seen.err, seen.report()
    seen = harness.run([prefix / "bin/near"])
    assert seen.status == 2 and all(word in seen.err for word in ("top", "coverage", "info")), seen.report()
    seen = harness.run([prefix / "bin/near", "top", "--job", "abc"])
    assert seen.status == 2 and "'abc' is not the process number of a job's mpiexec" in seen.err, seen.report()
    assert len(seen.err) < 200


def test_a_foreign_launcher_is_named(compiled):
    seen = harness.run([compiled("end_badly"), "well"], env={"PMI_RANK": 1, "PMI_SIZE": 4})
    assert seen.status != 0 and "Hydra (PMI_RANK=1, PMI_SIZE=4)" in seen.err, seen.report()
