"""Binding, the plan as text, and more ranks than processors."""

import os
import re
import signal
import struct
import sys

import pytest

SHOW = ["sh", "-c", "echo $NEAR_BOOT_RANK $(taskset -cp $$ | sed 's/.*: //')"]
CPUS = sorted(os.sched_getaffinity(0))
several = pytest.mark.skipif(len(CPUS) < 2, reason="needs two processors")


@several
def test_ranks_are_bound_before_they_run(launch):
    result = launch("-n", "2", "--bind-to", "hwthread", *SHOW)
    places = dict(line.split(" ", 1) for line in result.out.splitlines())
    assert {int(place) for place in places.values()} <= set(CPUS) and len(set(places.values())) == 2, result.report()


def test_memory_policy_is_local(launch):
    # numa_maps shows the policy of each range; the default policy would be "default".
    result = launch("-n", "1", "sh", "-c", "head -1 /proc/self/numa_maps 2>/dev/null")
    if not result.out:
        pytest.skip("this kernel has no numa_maps")
    assert " local " in result.out


def test_binding_to_nothing(launch):
    show = "import os; print(sorted(os.sched_getaffinity(0)))"
    result = launch("-n", "1", "--bind-to", "none", "python3", "-c", show)
    assert result.out == f"{CPUS}\n"


@several
def test_slots_follow_the_affinity_mask(prefix, nothing_left):
    result = nothing_left(["taskset", "-c", CPUS[1], prefix / "bin/mpiexec", "-n", "1", "--explain", "true"])
    assert "slots: 1 (affinity mask 1" in result.out and f"(cpu {CPUS[1]})" in result.out, result.report()


def test_too_many_ranks_are_one_line_of_warning(launch):
    count = str(len(CPUS) + 1)
    result = launch("-n", count, "true")
    assert result.status == 0 and result.err.count("\n") == 1 and "--oversubscribe" in result.err, result.report()
    assert launch("--oversubscribe", "-n", count, "true").err == ""
    assert launch("-q", "-n", count, "true").err == ""
    result = launch("--nooversubscribe", "-n", count, "true")
    assert result.status == 1 and "--nooversubscribe" in result.err


def test_crowded_ranks_are_not_pinned_to_one_core(launch):
    count = 2 * len(CPUS)
    result = launch("--oversubscribe", "-n", count, *SHOW)
    assert all(len(line.split()) == 2 for line in result.out.splitlines())
    explained = launch("--oversubscribe", "-n", count, "--explain", "true").out
    assert "because a rank that waits would keep the one that shares its core from running" in explained
    if len(CPUS) > 1:
        assert {line.split()[1] for line in result.out.splitlines()} != {str(CPUS[0])}


def test_explain_starts_nothing(launch, tmp_path):
    result = launch("-n", "2", "--explain", "-wdir", tmp_path, "-x", "A=1", "touch", "file")
    assert result.status == 0 and not (tmp_path / "file").exists()
    for part in "program: touch file (ranks 0-1)", "machine: ", "slots: ", "rank 1: ", f"directory: {tmp_path}", "A=1":
        assert part in result.out, result.report()


SLURM = {"SLURMD_NODENAME": "node1", "SLURM_JOB_ID": "12", "SLURM_CPUS_ON_NODE": "64"}


@pytest.mark.parametrize("variables, options, ranks", [
    ({"SLURM_NTASKS": "3"}, [], 3),
    ({"SLURM_NTASKS": "3"}, ["-n", "2"], 2),                                    # the user's option takes precedence
    ({"SLURM_NTASKS": "3", "SLURMD_NODENAME": ""}, [], 1),                      # a shell outside the job's machine
    ({"SLURM_NTASKS": "3", "SLURM_STEP_NUM_TASKS": "3"}, [], 1),                # each task starts an mpiexec
    ({"SLURM_NTASKS": "9", "SLURM_JOB_NUM_NODES": "3", "SLURM_TASKS_PER_NODE": "2(x2),5"}, [], 2),
    ({}, [], 1),
])
def test_slurm_tells_how_many_ranks(launch, variables, options, ranks):
    result = launch("--explain", "--oversubscribe", *options, "true", env={**SLURM, **variables})
    assert result.status == 0 and len(re.findall(r"^rank \d+:", result.out, re.M)) == ranks, result.report()
    result = launch("--oversubscribe", *options, "true", env={**SLURM, **variables})
    assert ("all ranks run on this one" in result.err) == ("SLURM_JOB_NUM_NODES" in variables), result.report()


def test_slurm_tells_how_many_processors(launch):
    seen = launch("--explain", "-n", "2", "true", env={**SLURM, "SLURM_CPUS_ON_NODE": "1"})
    assert re.search(r"^slots: 1 \(affinity mask .*, Slurm 1\)$", seen.out, re.M), seen.report()
    assert launch("--nooversubscribe", "-n", "2", "true", env={**SLURM, "SLURM_CPUS_ON_NODE": "1"}).status == 1
    seen = launch("--explain", "-n", "1", "true", env={**SLURM, "SLURM_CPUS_PER_TASK": "2"})
    assert "SLURM_CPUS_PER_TASK=2" in seen.out, seen.report()
    seen = launch("--explain", "-n", "1", "true", env={**SLURM, "SLURM_CPUS_PER_TASK": "2", "OMP_NUM_THREADS": "3"})
    assert "OMP_NUM_THREADS=3" in seen.out and "SLURM_CPUS" not in seen.out, seen.report()
    # It is ignored if the number of ranks differs from Slurm's, if the user sets OMP_NUM_THREADS, and if it is too large.
    for options, variables, level in ((["-n", "2"], {}, "core"), ([], {"OMP_NUM_THREADS": "1"}, "core"),
                                      ([], {"SLURM_CPUS_PER_TASK": "4096"}, "numa")):
        seen = launch("--explain", *options, "true", env={**SLURM, "SLURM_NTASKS": "1", "SLURM_CPUS_PER_TASK": "2", **variables})
        assert "SLURM_CPUS" not in seen.out and f"bound to: {level}" in seen.out, seen.report()
    result = launch("-n", "1", "true", env={**SLURM, "SLURM_CPUS_ON_NODE": "no", "SLURM_NTASKS": "x", "SLURM_CPUS_PER_TASK": "-1"})
    assert (result.status, result.err) == (0, ""), result.report()


@pytest.mark.parametrize("ask, before, seen", [
    ("mpiexec", [], "local"),
    ("numactl mpiexec", ["policy"], "bind:0"),
])
def test_ranks_keep_the_memory_policy_that_mpiexec_was_given(launch, prefix, nothing_left, ask, before, seen):
    set_policy = {"x86_64": 238, "aarch64": 237}.get(os.uname().machine)
    if set_policy is None or not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("this kernel or architecture shows no memory policies")
    # As `numactl --membind=0`: MPOL_BIND is 2.
    begin = (f"import ctypes, os, sys; nodes = ctypes.c_ulong(1);\n"
             f"if ctypes.CDLL(None, use_errno=True).syscall({set_policy}, 2, ctypes.byref(nodes), 64) != 0: sys.exit(77)\n"
             "os.execv(sys.argv[1], sys.argv[1:])") if before else "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    result = nothing_left([sys.executable, "-c", begin, prefix / "bin/mpiexec", "-n", "2", "--oversubscribe", "cat",
                           "/proc/self/numa_maps"], timeout=60)
    if result.status == 77:
        pytest.skip("set_mempolicy is forbidden here")
    policies = {line.split()[1] for line in result.out.splitlines()}
    assert result.status == 0 and policies == {seen}, f"{ask}: {result.report()}"


def test_bindings_are_reported(launch):
    result = launch("-n", "2", "--oversubscribe", "--report-bindings", "true")
    assert "mpiexec: rank 0: " in result.err and "mpiexec: rank 1: " in result.err


def test_threads_set_openmp_unless_the_user_did(launch):
    show = ["sh", "-c", "echo $OMP_NUM_THREADS"]
    assert launch("--threads", "2", "-q", "-n", "1", *show, env={}).out == "2\n"
    assert launch("--threads", "2", "-q", "-n", "1", "-x", "OMP_NUM_THREADS=5", *show).out == "5\n"


@several
def test_each_core_of_a_rank_is_a_place_for_openmp(launch):
    show = ["sh", "-c", "echo $OMP_NUM_THREADS $OMP_PLACES"]
    # The rank's own binding decides, whether or not it is alone on the machine.
    places = f"2 {{{CPUS[0]}}},{{{CPUS[1]}}}\n"
    result = launch("-q", "-n", "1", "--threads", "2", "--bind-to", "hwthread", *show)
    assert result.out in (places, f"2 {{{CPUS[0]},{CPUS[1]}}}\n"), result.report()
    assert launch("-q", "-n", "1", "--threads", "2", "-x", "OMP_PROC_BIND=false", *show).out == "2\n"
    assert launch("-q", "-n", "1", "--threads", "2", "-x", "OMP_PLACES=cores", *show).out == "2 cores\n"


@several
def test_a_rank_file_says_where_ranks_run(launch, tmp_path):
    file = tmp_path / "places"
    file.write_text(f"rank 1=localhost slot=cpu:{CPUS[0]}\nrank 0=+n0 slot=cpu:{CPUS[1]}\n")
    result = launch("-q", "-n", "2", "--rankfile", file, *SHOW)
    assert sorted(result.out.splitlines()) == [f"0 {CPUS[1]}", f"1 {CPUS[0]}"], result.report()
    file.write_text("rank 0=elsewhere slot=0\n")
    result = launch("-n", "1", "--rankfile", file, "true")
    assert result.status == 2 and "elsewhere" in result.err and f"{file}:1" in result.err, result.report()


def processors_of_header(job):
    """The number of ranks, and of their processors, in the header of a job's segment; with fewer processors, they share."""
    folder = f"/proc/{job.pid}/fd"
    [segment] = {name for name in os.listdir(folder) if os.readlink(f"{folder}/{name}").startswith("/memfd:nearmpi")}
    with open(f"{folder}/{segment}", "rb") as header:
        _, _, _, job_size, _, _, _, processors = struct.unpack("=QIIIIQQI", header.read(44))
    return job_size, processors


@several
def test_ranks_know_that_they_share_a_processor_by_a_rank_file(start, compiled, tmp_path):
    """They must not spin while they wait; the segment's header tells whether they may."""
    file = tmp_path / "places"
    file.write_text(f"rank 0=+n0 slot=cpu:{CPUS[0]}\nrank 1=+n0 slot=cpu:{CPUS[0]}\n")
    job = start("-n", "2", "--rankfile", file, compiled("end_badly"), "hang")
    job.wait_for("in-mpi", 2)
    assert processors_of_header(job) == (2, 1)
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


@pytest.mark.parametrize("options", [["--map-by", "ppr:1:socket", "-n", "1"], ["--map-by", "package", "-n", "1"]])
def test_a_rank_that_is_mapped_by_a_package_may_use_all_of_it(launch, options):
    with open(f"/sys/devices/system/cpu/cpu{CPUS[0]}/topology/package_cpus_list") as file:
        parts = [part.split("-") for part in file.read().strip().split(",")]
    package = {cpu for part in parts for cpu in range(int(part[0]), int(part[-1]) + 1)}
    show = "import os; print(sorted(os.sched_getaffinity(0)), os.environ.get('OMP_PLACES'))"
    result = launch("-q", *options, "python3", "-c", show)
    assert result.out == f"{sorted(package & set(CPUS))} None\n", result.report()


@several
def test_ranks_that_share_a_domain_with_a_processor_for_each_may_spin(start, compiled):
    job = start("-q", "-n", "2", "--map-by", "package", compiled("end_badly"), "hang")
    job.wait_for("in-mpi", 2)
    job_size, processors = processors_of_header(job)
    assert job_size == 2 and processors >= 2
    job.signal(signal.SIGINT)
    assert job.finish()[0] == 130


def test_only_a_plan_can_be_made_for_another_machine(launch, tmp_path):
    file = tmp_path / "machine"
    file.write_text("package:2 core:2 pu:1")
    assert "2 packages" in launch("-n", "2", "--explain", "--machine", file, "true").out
    for arguments, environment in ((["--machine", file], {}), ([], {"HWLOC_SYNTHETIC": "package:2 core:2 pu:1"})):
        result = launch("-n", "2", *arguments, "echo", "started", env=environment)
        assert result.status != 0 and result.out == "" and "--explain" in result.err, result.report()
        assert all(f"{name}={value} describes" in result.err for name, value in environment.items()), result.report()
    file.write_text("nonsense")
    result = launch("-n", "2", "--explain", "--machine", file, "true")
    assert result.status == 1 and str(file) in result.err, result.report()


@pytest.mark.parametrize("option", ["--rankfile", "--machine"])
def test_a_folder_is_not_a_file(launch, tmp_path, option):
    result = launch("-n", "1", "--explain", option, tmp_path, "true")
    assert result.status in (1, 2) and "cannot read" in result.err and str(tmp_path) in result.err, result.report()


@pytest.mark.parametrize("how", ["core", "slot", "l2", "l3", "numa", "package", "socket", "hwthread", "spread", "node",
                                 "ppr:2:package", "core:PE=1", "socket:OVERSUBSCRIBE"])
def test_every_mapping_starts_the_ranks(launch, how):
    result = launch("-q", "-n", "2", "--map-by", how, "echo", "a")
    assert (result.status, result.out) == (0, "a\na\n"), result.report()
