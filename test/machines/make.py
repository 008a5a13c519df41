#!/usr/bin/env python3
"""Writes the machines of this folder that hwloc's synthetic form cannot describe, as hwloc's XML (NAME.xml).

    test/machines/make.py            all of them

Each is modelled on public descriptions of such machines. Only the structure matters: which cores belong to which caches
and nodes, which memory and devices are near, and how Linux numbers them.
"""

from pathlib import Path

GIB = 1 << 30
CACHE = {"L1Cache": 1, "L2Cache": 2, "L3Cache": 3}
NETWORK, OPENFABRICS = 2, 3  # hwloc's osdev_type


def bits(numbers):
    """A set of numbers in hwloc's form: words of 32 bits, the highest first."""
    mask = sum(1 << number for number in set(numbers))
    words = []
    while mask or not words:
        words.append(f"0x{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(words))


class Place:
    """An object of the machine and its contents. `nodes`: its memory; `devices`: the PCI devices below it."""

    def __init__(self, kind, inside=(), *, nodes=(), devices=(), size=0, processors=()):
        self.kind, self.inside, self.nodes, self.devices, self.size = kind, list(inside), list(nodes), list(devices), size
        self.own = list(processors)

    def processors(self):
        return self.own + [number for part in self.inside for number in part.processors()]

    def memory(self):
        return [node["number"] for node in self.nodes] + [number for part in self.inside for number in part.memory()]


def core(*processors):
    return Place("Core", [Place("PU", processors=[number]) for number in processors])


def node(number, gib, subtype=None):
    return {"number": number, "bytes": gib * GIB, "subtype": subtype}


def device(bus, *names):
    """names: (name, NETWORK or OPENFABRICS) of its devices."""
    return {"bus": bus, "names": names}


class Writer:
    def __init__(self, machine, allowed):
        self.lines, self.next, self.count = [], 1, {}
        self.machine, self.allowed, self.node_ids = machine, allowed, {}

    def identity(self):
        self.next += 1
        return self.next

    def number(self, kind):
        self.count[kind] = self.count.get(kind, -1) + 1
        return self.count[kind]

    def sets(self, processors, nodes):
        cpus, memory = bits(processors), bits(nodes)
        return f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{memory}" complete_nodeset="{memory}"'

    def put(self, depth, text):
        self.lines.append("  " * depth + text)

    def place(self, place, depth, above):
        processors = place.processors()
        nodes = place.memory() or above
        own = [each["number"] for each in place.nodes] or above
        text = f'<object type="{place.kind}" {self.sets(processors, nodes)} gp_index="{self.identity()}"'
        if place.kind in CACHE:
            text += f' cache_size="{place.size}" depth="{CACHE[place.kind]}" cache_linesize="64"' \
                    ' cache_associativity="16" cache_type="0"'
        elif place.kind == "PU":
            self.put(depth, text + f' os_index="{processors[0]}"/>')
            return
        else:
            text += f' os_index="{self.number(place.kind)}"'
        if place is self.machine:
            text += f' allowed_cpuset="{bits(self.allowed or processors)}" allowed_nodeset="{bits(nodes)}"'
        self.put(depth, text + ">")
        for each in place.nodes:
            self.node_ids[each["number"]] = self.identity()
            kind = f' subtype="{each["subtype"]}"' if each["subtype"] else ""
            self.put(depth + 1, f'<object type="NUMANode" os_index="{each["number"]}"{kind} '
                     f'{self.sets(processors, [each["number"]])} gp_index="{self.node_ids[each["number"]]}" '
                     f'local_memory="{each["bytes"]}"/>')
        for part in place.inside:
            self.place(part, depth + 1, own if place.nodes else above)
        for each in place.devices:
            bus = int(each["bus"][5:7], 16)
            self.put(depth + 1, f'<object type="Bridge" gp_index="{self.identity()}" bridge_type="0-1" depth="0" '
                     f'bridge_pci="0000:[{bus:02x}-{bus:02x}]">')
            self.put(depth + 2, f'<object type="PCIDev" gp_index="{self.identity()}" pci_busid="{each["bus"]}" '
                     'pci_type="0200 [15b3:101b] [15b3:0001] 00" pci_link_speed="15.753846">')
            for name, kind in each["names"]:
                self.put(depth + 3, f'<object type="OSDev" gp_index="{self.identity()}" name="{name}" '
                         f'osdev_type="{kind}"/>')
            self.put(depth + 2, "</object>")
            self.put(depth + 1, "</object>")
        self.put(depth, "</object>")


def write(name, machine, *, distances=None, allowed=None, kinds=(), bandwidth=()):
    """distances: rows by node. kinds: (processors, efficiency, type). bandwidth: (node, near processors, MiB/s)."""
    writer = Writer(machine, allowed)
    writer.place(machine, 1, [])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
             '<topology version="2.0">', *writer.lines]
    if distances:
        count = len(distances)
        indexes = " ".join(str(number) for number in range(count)) + " "
        lines += [f'  <distances2 type="NUMANode" nbobjs="{count}" kind="5" name="NUMALatency" indexing="os">',
                  f'    <indexes length="{len(indexes)}">{indexes}</indexes>']
        for row in distances:
            values = " ".join(str(value) for value in row) + " "
            lines.append(f'    <u64values length="{len(values)}">{values}</u64values>')
        lines.append("  </distances2>")
    if bandwidth:
        lines.append('  <memattr name="Bandwidth" flags="5">')
        lines += [f'    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="{writer.node_ids[number]}" '
                  f'value="{value}" initiator_cpuset="{bits(near)}"/>' for number, near, value in bandwidth]
        lines.append("  </memattr>")
    for processors, efficiency, kind in kinds:
        lines += [f'  <cpukind cpuset="{bits(processors)}" forced_efficiency="{efficiency}">',
                  f'    <info name="CoreType" value="{kind}"/>', "  </cpukind>"]
    (Path(__file__).parent / f"{name}.xml").write_text("\n".join([*lines, "</topology>", ""]))


def hops(groups, near, far, own=10):
    """Distances between nodes in groups: `near` within a group, `far` between groups."""
    member = [group for group, count in enumerate(groups) for _ in range(count)]
    return [[own if a == b else near if member[a] == member[b] else far for b in range(len(member))]
            for a in range(len(member))]


def xeon(packages, cores, devices):
    """Sub-NUMA clustering: two nodes share the L3 of each package. Second hardware threads are numbered last."""
    total = packages * 2 * cores
    parts = []
    for package in range(packages):
        halves = []
        for half in range(2):
            number = 2 * package + half
            first = number * cores
            halves.append(Place("Group", [Place("L2Cache", [core(first + at, total + first + at)], size=2 << 20)
                                          for at in range(cores)], nodes=[node(number, 64)],
                                devices=devices.get(number, [])))
        parts.append(Place("Package", [Place("L3Cache", halves, size=45 << 20)]))
    return Place("Machine", parts)


def mlx(number, bus):
    return device(bus, (f"mlx5_{number}", OPENFABRICS), (f"ib{number}", NETWORK))


def opteron():
    """Four packages of two nodes with six cores each; the NIC is attached to node 1, as usual on such boards."""
    parts = []
    for package in range(4):
        dies = []
        for number in (2 * package, 2 * package + 1):
            dies.append(Place("L3Cache", [Place("L2Cache", [core(6 * number + at)], size=512 << 10) for at in range(6)],
                              nodes=[node(number, 16)], size=5 << 20,
                              devices=[mlx(0, "0000:41:00.0")] if number == 1 else []))
        parts.append(Place("Package", dies))
    near = {(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (0, 4), (0, 6), (1, 3), (1, 5), (1, 7), (2, 4), (2, 6), (3, 5),
            (3, 7), (4, 6), (5, 7)}
    distances = [[10 if a == b else 16 if (min(a, b), max(a, b)) in near else 22 for b in range(8)] for a in range(8)]
    return Place("Machine", parts), distances


def knl():
    """Flat mode with four clusters: 64 cores with four threads each, in pairs that share an L2, and a node of MCDRAM for
    each node of DRAM."""
    clusters = []
    for cluster in range(4):
        tiles = []
        for tile in range(8):
            first = 16 * cluster + 2 * tile
            tiles.append(Place("L2Cache", [core(*(number + 64 * thread for thread in range(4)))
                                           for number in (first, first + 1)], size=1 << 20))
        clusters.append(Place("Group", tiles, nodes=[node(cluster, 24), node(4 + cluster, 4, "MCDRAM")]))
    distances = [[10 if a == b else 31 if abs(a - b) == 4 else 21 if a < 4 and b < 4 else 41 for b in range(8)]
                 for a in range(8)]
    return Place("Machine", [Place("Package", clusters)]), distances


def grace_hopper():
    """72 cores, each with an L2, and one L3; the GPU's memory is a separate node."""
    cores = [Place("L2Cache", [core(at)], size=1 << 20) for at in range(72)]
    package = Place("Package", [Place("L3Cache", cores, size=114 << 20)], nodes=[node(0, 480), node(1, 96, "GPUMemory")],
                    devices=[mlx(0, "0009:01:00.0")])
    return Place("Machine", [package]), [[10, 80], [80, 10]]


def hybrid():
    """A laptop: six fast cores with two threads, eight slower ones of which four share an L2, and two slow ones outside
    the L3."""
    fast = [Place("L2Cache", [core(2 * at, 2 * at + 1)], size=2 << 20) for at in range(6)]
    slower = [Place("L2Cache", [core(12 + 4 * four + at) for at in range(4)], size=2 << 20) for four in range(2)]
    slow = Place("L2Cache", [core(20), core(21)], size=2 << 20)
    machine = Place("Machine", [Place("Package", [Place("L3Cache", fast + slower, size=24 << 20), slow],
                                      nodes=[node(0, 32)])])
    kinds = [(range(20, 22), 0, "IntelAtom"), (range(12, 20), 1, "IntelAtom"), (range(12), 2, "IntelCore")]
    return machine, kinds


def plain(packages, cores, extra=(), devices=()):
    """Packages with one node, one L3, and cores with two threads."""
    total = packages * cores
    parts = []
    for package in range(packages):
        inside = [Place("L2Cache", [core(at, total + at)], size=1 << 20)
                  for at in range(package * cores, (package + 1) * cores)]
        parts.append(Place("Package", [Place("L3Cache", inside, size=32 << 20)],
                           nodes=[node(package, 128), *(each for at, each in extra if at == package)],
                           devices=[each for at, each in devices if at == package]))
    return Place("Machine", parts)


def main():
    write("xeon-1-package", xeon(1, 12, {0: [mlx(0, "0000:17:00.0")]}), distances=hops([2], 11, 21))
    write("xeon-2-packages",
          xeon(2, 12, {0: [mlx(0, "0000:17:00.0"), device("0000:01:00.0", ("eno1", NETWORK))], 3: [mlx(1, "0000:ca:00.0")]}),
          distances=hops([2, 2], 11, 21))
    machine, distances = opteron()
    write("opteron-4-packages", machine, distances=distances)
    machine, distances = knl()
    write("knl-flat", machine, distances=distances)
    machine, distances = grace_hopper()
    write("grace-hopper", machine, distances=distances)
    machine, kinds = hybrid()
    write("hybrid-laptop", machine, kinds=kinds)
    write("container-3-cores", plain(2, 8), allowed=[3, 6, 13], distances=hops([1, 1], 10, 21))
    both = [[10, 21, 14], [21, 10, 24], [14, 24, 10]]
    near = [[*range(package * 16, package * 16 + 16), *range(32 + package * 16, 48 + package * 16)] for package in (0, 1)]
    write("cxl", plain(2, 16, extra=[(0, node(2, 256))]), distances=both,
          bandwidth=[(0, near[0], 240000), (1, near[1], 240000), (2, near[0], 56000)])


if __name__ == "__main__":
    main()
