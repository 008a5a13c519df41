"""Boots a small system on machines that we do not have: QEMU, emulated in software, with Debian's cloud kernel, an
initramfs with busybox, and a serial console for the output of the programs. See README.md.
"""

import gzip
import lzma
import os
import platform
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEPT = ROOT / "build/numa"
KERNELS = ["linux-image-cloud-amd64", "linux-image-virtual"]  # Debian's and Ubuntu's name for the newest kernel
PACKAGES = ["busybox-static"]
# Drivers of the NIC, if they are modules of the kernel, in the order in which they are loaded.
MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover",
           "net_failover", "virtio_net"]
MARK = "::numa::"  # begins those lines of the console that are for this program
BOOT = 60  # seconds that a guest may need to boot, report and halt, on a busy machine


class Missing(Exception):
    """Tells what the laboratory lacks, and what to do about it."""


def demand_tools():
    """Raises Missing if guests cannot be booted here; installs what dev/setup can install."""
    if platform.machine() != "x86_64":
        raise Missing(f"the guests' kernel and programs are for x86-64; this machine is {platform.machine()}")
    if subprocess.run([ROOT / "dev/setup", "numa"]).returncode != 0:
        raise Missing("the packages of the group [numa] of dev/packages.txt are missing")
    for tool in ("qemu-system-x86_64", "apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed (QEMU: group [numa] of dev/packages.txt; kernel and busybox come as "
                          "packages of Debian or Ubuntu)")


def download():
    """Unpacks kernel and busybox in KEPT/root, by apt's own client with separate package lists, so without root."""
    root, stamp, wanted = KEPT / "root", KEPT / "root/.complete", [*KERNELS, *PACKAGES, *MODULES]
    if stamp.exists() and stamp.read_text().split() == wanted:
        return root
    for name in ("lists", "cache", "packages"):
        shutil.rmtree(KEPT / name, ignore_errors=True)
        (KEPT / name).mkdir(parents=True)
    shutil.rmtree(root, ignore_errors=True)
    user = subprocess.run(["id", "-un"], text=True, capture_output=True, check=True).stdout.strip()
    (KEPT / "apt.conf").write_text(f'APT::Architecture "amd64";\nAPT::Sandbox::User "{user}";\n'
                                   f'Dir::State::Lists "{KEPT}/lists";\nDir::Cache "{KEPT}/cache";\n')
    environment = {**os.environ, "APT_CONFIG": str(KEPT / "apt.conf")}
    said = []

    def run(*command, **options):
        done = subprocess.run(command, text=True, capture_output=True, env=environment, **options)
        said.append(done.stdout + done.stderr)
        if done.returncode != 0:
            (KEPT / "apt.log").write_text("".join(said))
            raise Missing(f"'{' '.join(command)}' failed (see {KEPT}/apt.log); it needs a network and the packages of Debian or Ubuntu\n"
                          + "".join(said)[-1500:])
        return done.stdout

    print("numa: downloading a kernel and " + " ".join(PACKAGES), flush=True)
    run("apt-get", "update")
    known = run("apt-cache", "pkgnames", "linux-image-").split()
    name = next((name for name in KERNELS if name in known), None)
    if not name:
        raise Missing(f"none of {' '.join(KERNELS)} is among the packages of this system's sources (apt)")
    # The package only refers to the newest kernel; the package that it depends on has the file.
    depends = run("apt-cache", "depends", name)
    kernel = re.search(r"Depends: (linux-image-\S+)", depends)
    if not kernel:
        raise Missing(f"{name} does not name a kernel:\n{depends}")
    run("apt-get", "download", kernel[1], *PACKAGES, cwd=KEPT / "packages")
    for package in sorted((KEPT / "packages").glob("*.deb")):
        run("dpkg-deb", "-x", str(package), str(root))
    (root / "modules").mkdir()
    for module in MODULES:
        for file in [*root.rglob(f"{module}.ko*")]:
            content = file.read_bytes()
            (root / f"modules/{module}.ko").write_bytes(lzma.decompress(content) if file.suffix == ".xz" else content)
    for folder in ("lib/modules", "usr/lib/modules"):
        shutil.rmtree(root / folder, ignore_errors=True)
    stamp.write_text(" ".join(wanted))
    return root


def needed_libraries(files, own):
    """The system's libraries that `files` are linked with, by the paths at which they are searched. `own`: the libraries
    among `files`, which are found next to each other."""
    paths = os.pathsep.join(sorted({str(path.parent) for path in own}))
    found = set()
    for file in files:
        listed = subprocess.run(["ldd", str(file)], text=True, capture_output=True,
                                env={**os.environ, "LD_LIBRARY_PATH": paths})
        if "not found" in listed.stdout:
            raise Missing(f"{file} lacks a library:\n{listed.stdout}")
        found |= {Path(path) for path in re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listed.stdout, re.MULTILINE)}
    return sorted(found - set(own))


def compiled(programs, prefix, folder="programs"):
    """Compiles the named programs of test/numa and test/mpi with the installation's mpicc."""
    made = {}
    (KEPT / folder).mkdir(parents=True, exist_ok=True)
    for name in sorted(programs):
        made[name] = KEPT / folder / name
        source = next(path for path in (HERE / f"{name}.c", HERE.parent / f"mpi/{name}.c") if path.exists())
        done = subprocess.run([prefix / "bin/mpicc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
                               source, "-o", made[name]], text=True, capture_output=True)
        if done.returncode != 0:
            raise Missing(f"{source} does not compile:\n{done.stdout}{done.stderr}")
    return made


def archive(entries):
    """A cpio archive (newc), which a kernel unpacks as its first file system. `entries`: path to (mode, bytes)."""
    parts = []
    folders = {str(parent) for path in entries for parent in Path(path).parents} - {"."}
    everything = {**{folder: (0o040755, b"") for folder in folders}, **entries}
    for number, path in enumerate([*sorted(everything), "TRAILER!!!"], 1):
        mode, content = everything.get(path, (0, b""))
        fields = [number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path.encode()) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + path.encode() + b"\0"
        parts += [head, b"\0" * (-len(head) % 4), content, b"\0" * (-len(content) % 4)]
    return b"".join(parts)


def installation(prefix, where, left_out=r"^$"):
    """The files of an installation, by their paths in the guest under `where`."""
    return {f"{where}/{path.relative_to(prefix)}": path for folder in ("bin", "etc", "lib", "share")
            for path in sorted((prefix / folder).rglob("*"))
            if path.is_file() and not re.search(left_out, str(path.relative_to(prefix)))}


def installed(prefix, where, programs, left_out=r"^$"):
    """The files of a guest, path there to path here: an installation in /`where`, the programs (name to path) in
    /`where`/programs, and the system's libraries that they need. `left_out`: a pattern of paths below `prefix`."""
    own = {path.relative_to(prefix): path for folder in ("bin", "etc", "lib", "share")
           for path in sorted((prefix / folder).rglob("*")) if path.is_file()}
    own = {name: path for name, path in own.items() if not re.search(left_out, str(name))}
    linked = [path for path in [*own.values(), *programs.values()] if path.read_bytes()[:4] == b"\x7fELF"]
    libraries = [path for path in linked if path.is_relative_to(prefix / "lib")]
    return {**{str(path).lstrip("/"): path for path in needed_libraries(linked, libraries)},
            **{f"{where}/{name}": path for name, path in own.items()},
            **{f"{where}/programs/{name}": path for name, path in programs.items()}}


def loaded_libraries():
    """The system's libfabric, which ranks load when they need it, and what it needs: path there to path here."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], text=True, capture_output=True).stdout
    found = re.search(r"libfabric\.so\.1 .*=> (\S+)", listed)
    if not found:
        raise Missing("libfabric is not installed; `dev/setup build` installs it")
    libraries = [Path(found[1]), *needed_libraries([found[1]], [])]
    return {str(path).lstrip("/"): path for path in libraries}


def first_system(root, files):
    """The part of the initramfs that is common to all machines: all but /init. `files`: path there to path here."""
    busybox = next(path for path in (root / "bin/busybox", root / "usr/bin/busybox") if path.exists())
    files = {"bin/busybox": busybox, **files,
             **{f"modules/{path.name}": path for path in (root / "modules").iterdir()}}
    return {name: (0o100755, path.read_bytes()) for name, path in files.items()}


# The first process of the guest. It begins with a watchdog, so a guest ends even if no process outside waits for it.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /sbin /usr/bin /usr/sbin
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
exec </dev/null >/dev/ttyS0 2>&1
(sleep {limit}; echo; echo '{mark} watchdog'; poweroff -f) &
export PATH=/nearmpi/bin:/nearmpi/programs:/bin:/sbin:/usr/bin:/usr/sbin LD_LIBRARY_PATH=/nearmpi/lib HOME=/tmp
cd /tmp
for node in /sys/devices/system/node/node[0-9]*; do
  echo "{mark} node ${{node##*node}} cpus [$(cat $node/cpulist)] distance [$(cat $node/distance)]" \\
    "memory [$(awk '/MemTotal/ {{print $4}}' $node/meminfo)]" \\
    "bandwidth [$(cat $node/access0/initiators/read_bandwidth 2>/dev/null)]"
done
{commands}
echo "{mark} end"
poweroff -f
"""


def processors(text):
    """Returns a list such as "0-2,5" as a set of numbers."""
    ranges = [part.split("-") for part in text.split(",") if part]
    return {number for each in ranges for number in range(int(each[0]), int(each[-1]) + 1)}


def machine_faults(console, machine):
    """The differences between the guest and the machine that was requested."""
    faults, seen = [], set()
    for number, cpus, distance, memory, bandwidth in re.findall(
            MARK + r" node (\d+) cpus \[(.*?)\] distance \[(.*?)\] memory \[(.*?)\] bandwidth \[(.*?)\]", console):
        node = int(number)
        seen.add(node)
        if node >= machine.all_nodes:
            continue
        if processors(cpus) != machine.processors_of(node):
            faults.append(f"node {node} has processors [{cpus}], not {sorted(machine.processors_of(node))}")
        if [int(word) for word in distance.split()] != machine.distances_of(node):
            faults.append(f"node {node} has distances [{distance}], not {machine.distances_of(node)}")
        # Kernel and firmware keep about 40 MiB for themselves.
        if not machine.memory - 64 < int(memory or 0) / 1024 <= machine.memory:
            faults.append(f"node {node} has {int(memory or 0) // 1024} MiB, not {machine.memory}")
        wanted = str(machine.bandwidth[node]) if machine.bandwidth else ""
        if bandwidth != wanted:
            faults.append(f"node {node} has bandwidth [{bandwidth}], not [{wanted}]")
    if seen != set(range(machine.all_nodes)):
        faults.append(f"it has the nodes {sorted(seen)}, not {list(range(machine.all_nodes))}")
    return faults


def qemu_arguments(machine, kernel, initramfs):
    board = machine.board + (",hmat=on" if machine.bandwidth else "")
    arguments = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                 "-machine", board, "-accel", "tcg,thread=multi", "-cpu", "max",
                 "-smp", f"{machine.nodes * machine.processors},sockets={machine.nodes},cores={machine.processors}",
                 "-m", f"{machine.all_nodes * machine.memory}M"]
    tables = []
    for node in range(machine.all_nodes):
        nearest = machine.nearest_to(node)
        arguments += ["-object", f"memory-backend-ram,id=memory{node},size={machine.memory}M", "-numa",
                      f"node,nodeid={node},memdev=memory{node}" + (f",initiator={nearest}" if machine.bandwidth else "")]
        for other, distance in enumerate(machine.distances_of(node)):
            tables += ["-numa", f"dist,src={node},dst={other},val={distance}"]
        for other in range(machine.nodes) if machine.bandwidth else ():
            link = f"hmat-lb,initiator={other},target={node},hierarchy=memory"
            bandwidth = machine.bandwidth[node] // (1 if other == nearest else 2)
            tables += ["-numa", f"{link},data-type=access-latency,latency={5 * machine.distances_of(node)[other]}",
                       "-numa", f"{link},data-type=access-bandwidth,bandwidth={bandwidth}M"]
    for node in range(machine.nodes):
        arguments += ["-numa", f"cpu,node-id={node},socket-id={node}"]
    arguments += tables
    return [*arguments, *machine.more, "-kernel", str(kernel), "-initrd", str(initramfs), "-serial", "stdio",
            "-append", "console=ttyS0 quiet loglevel=3 panic=-1"]


def boot(machine, name, commands, limit, system, root, wire=None):
    """Boots the machine, runs the shell commands there and returns the console output. It ends within `limit` seconds.
    `wire`: adds a NIC, whose cable is this connected socket; another machine has the other end."""
    init = INIT.format(mark=MARK, limit=limit, commands=commands)
    initramfs = KEPT / f"{name}.cpio.gz"
    initramfs.write_bytes(gzip.compress(archive({**system, "init": (0o100755, init.encode())}), compresslevel=1))
    kernel = next((root / "boot").glob("vmlinuz-*"))
    arguments = qemu_arguments(machine, kernel, initramfs)
    if wire:
        bus = ""
        if machine.nic_node is not None:
            arguments += ["-device", f"pxb-pcie,id=near_nic,bus_nr=128,numa_node={machine.nic_node}",
                          "-device", "pcie-root-port,id=port_of_nic,bus=near_nic,chassis=1"]
            bus = ",bus=port_of_nic"
        arguments += ["-netdev", f"socket,id=wire,fd={wire.fileno()}",
                      "-device", f"virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:{wire.fileno() % 256:02x}{bus}"]
    # Time may pass more slowly in the guest than here, so the watchdog here allows a little more.
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit + 30,
                              pass_fds=[wire.fileno()] if wire else [])
        said, status = done.stdout + done.stderr, f"status {done.returncode}"
    except subprocess.TimeoutExpired as expired:
        said, status = (expired.stdout or b"") + (expired.stderr or b""), "ended by the watchdog outside"
    console = said.decode(errors="replace").replace("\r", "")
    (KEPT / f"{name}.log").write_text(console + f"\nQEMU: {status}\n")
    return console


def marked(number, command):
    """Shell lines that run the command in a way that section() can find its output and its status."""
    return (f"echo \"{MARK} begin {number}\"\nread started rest </proc/uptime\n{command}\nstatus=$?\n"
            f"read ended rest </proc/uptime\necho; echo \"{MARK} exit {number} $status $started $ended\"")


def section(console, number):
    """Output, exit status (None if it did not end) and seconds in the guest of the command with this number."""
    found = re.search(rf"^{MARK} begin {number}\n(.*?)(?:^{MARK} exit {number} (\d+) (\S+) (\S+)$|\Z)", console,
                      re.MULTILINE | re.DOTALL)
    if not found:
        return "", None, 0.0
    if found[2] is None:
        return found[1], None, 0.0
    return found[1], int(found[2]), float(found[4]) - float(found[3])


# For each of two guests with a network between them: $GUEST is 0 or 1, $OWN and $OTHER are the addresses. A guest
# begins when it can reach the other, and stays until both are done. The kernel says up to a second later than an interface carries
# packets that it does, and libfabric ignores it until then.
JOINED = """for module in {modules}; do [ ! -f /modules/$module.ko ] || insmod /modules/$module.ko; done
export GUEST={guest} OWN=10.0.0.{own} OTHER=10.0.0.{other}
ifconfig lo 127.0.0.1 up
ifconfig eth0 $OWN netmask 255.255.255.0 up
timeout {limit} sh -c 'until ifconfig eth0 | grep -q RUNNING; do sleep 0.1; done' || echo "eth0 does not run"
timeout {limit} sh -c 'until ping -c 1 -W 1 $OTHER >/dev/null 2>&1; do sleep 1; done' || echo "$OTHER is not heard"
{commands}
if [ $GUEST = 0 ]; then timeout {limit} nc -l -p 9 >/dev/null; fi
if [ $GUEST = 1 ]; then timeout {limit} sh -c 'until nc $OTHER 9 </dev/null 2>&1; do sleep 1; done' >/dev/null; fi"""


def boot_two(machine, name, commands, limit, system, root):
    """Boots two such machines with a network between them, runs commands[0] on one and commands[1] on the other, and
    returns the output of the two consoles."""
    wires = socket.socketpair()
    with wires[0], wires[1], ThreadPoolExecutor() as pool:
        guests = [pool.submit(boot, machine, f"{name}.{guest}",
                              JOINED.format(modules=" ".join(MODULES), guest=guest, own=1 + guest, other=2 - guest,
                                            limit=BOOT, commands=commands[guest]),
                              limit, system, root, wires[guest]) for guest in range(2)]
        return [guest.result() for guest in guests]
