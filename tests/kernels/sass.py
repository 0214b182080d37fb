# SPDX-License-Identifier: Apache-2.0
"""What the machine code of a kernel says: nvdisasm's text in, one Kernel of figures for each kernel out.

Counted are instructions as they stand in the code, each once, however often it runs. The region is where a kernel
spends its time. It is the loop with the most tensor instructions. Without those it is what moves most bytes of global
memory, wide accesses before narrow ones, on the way through the code where most are moved: the code outside of loops, or
that of a loop without the loops inside it, which counts as four trips of what is around it.
Ways that only a divided warp takes (BRA.DIV), and called functions (division of 64 bits), are not in it.
"""
import re
from dataclasses import dataclass

INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?(U?P[0-9T]+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+):")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
REGISTER = re.compile(r"\bR(\d+)\b")
FP32 = {"FADD", "FMUL", "FFMA", "FFMA2", "FADD2", "FMUL2", "HADD2", "HMUL2", "HFMA2"}
FP64 = {"DADD", "DMUL", "DFMA", "DSETP"}
SPECIAL = {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO"}  # 16 lanes a clock
CONVERT = {"I2F", "I2FP", "F2I", "F2F", "F2FP", "PRMT"}
NO_PIPE = {"BRA", "BSSY", "BSYNC", "EXIT", "NOP", "BAR", "CALL", "RET", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "BREAK", "BPT",
           "S2R", "S2UR", "LDC", "ULDC", "CS2R", "SHFL"}
TENSOR = {"HMMA", "QMMA", "IMMA", "DMMA", "HGMMA", "QGMMA"}
RESERVED = 1024  # bytes of shared memory that the system takes of each block
SHARED = {"LDS", "STS", "LDSM", "LDGSTS", "ATOMS"}
TRIPS = 4  # of a loop, when it is compared with what is around it
GLOBAL = {"LDG", "LD", "STG", "ST", "LDGSTS", "ATOM", "ATOMG", "RED", "REDG"}


@dataclass
class Instruction:
    guarded: bool
    name: str  # with its modifiers: LDG.E.128
    operands: str

    @property
    def op(self):
        return self.name.split(".")[0]

    @property
    def target(self):
        found = TARGET.search(self.operands)
        return found.group(1) if found else None

    @property
    def bytes(self):
        """Of one thread's access to memory."""
        for part in self.name.split(".")[1:]:
            if part in ("U8", "S8", "8"):
                return 1
            if part in ("U16", "S16", "16"):
                return 2
            if part in ("64", "128"):
                return int(part) // 8
        return 4


@dataclass
class Kernel:
    name: str  # mangled
    architecture: str
    figures: dict


def widths(instructions, ops):
    """{bits: number} of accesses."""
    count = {}
    for i in instructions:
        if i.op in ops:
            count[8 * i.bytes] = count.get(8 * i.bytes, 0) + 1
    return count


def in_flight(region):
    """The most bytes that one thread has asked of global memory and not yet used, in the order of the code."""
    waiting, most = {}, 0  # first register: (all of them, bytes)
    for i in region:
        named = {int(r) for r in REGISTER.findall(i.operands)}
        waiting = {first: w for first, w in waiting.items() if not w[0] & named}
        if i.op in ("LDG", "LD"):
            to = REGISTER.search(i.operands)
            if to:
                first = int(to.group(1))
                waiting[first] = (set(range(first, first + max(1, i.bytes // 4))), i.bytes)
        most = max(most, sum(size for _, size in waiting.values()))
    return most


class Flow:
    """Blocks of instructions, who follows whom, and the loops."""

    def __init__(self, code, labels):
        starts = {0} | {labels[i.target] for i in code if i.target in labels}
        starts |= {n + 1 for n, i in enumerate(code) if i.op in ("BRA", "EXIT", "RET", "BRX", "JMP", "BPT", "BREAK")}
        starts = sorted(s for s in starts if s < len(code))
        self.blocks = [code[a:b] for a, b in zip(starts, starts[1:] + [len(code)])]
        number = {start: n for n, start in enumerate(starts)}
        self.next = []
        for n, block in enumerate(self.blocks):
            last, to = block[-1], []
            if last.op == "BRA" and last.target in labels and ".DIV" not in last.name:
                to.append(number[labels[last.target]])
            # BRA's own condition may also stand among its operands: BRA P0, or BRA.U !UP0.
            conditional = last.guarded or ".DIV" in last.name or re.match(r"!?U?P\d", last.operands)
            if (last.op not in ("BRA", "EXIT", "RET", "BRX", "JMP") or conditional) and n + 1 < len(self.blocks):
                to.append(n + 1)
            self.next.append(to)
        self.order = self._reverse_post_order()
        self.loops = self._loops()

    def _reverse_post_order(self):
        seen, order, stack = {0}, [], [(0, iter(self.next[0]))]
        while stack:
            block, rest = stack[-1]
            for n in rest:
                if n not in seen:
                    seen.add(n)
                    stack.append((n, iter(self.next[n])))
                    break
            else:
                order.append(block)
                stack.pop()
        return order[::-1]

    def _loops(self):
        """Sets of blocks. By dominators: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm"."""
        place = {b: n for n, b in enumerate(self.order)}
        before = {b: [] for b in self.order}
        for b in self.order:
            for n in self.next[b]:
                before[n].append(b)
        above = {0: 0}

        def meet(a, b):
            while a != b:
                while place[a] > place[b]:
                    a = above[a]
                while place[b] > place[a]:
                    b = above[b]
            return a

        changed = True
        while changed:
            changed = False
            for b in self.order[1:]:
                known = [p for p in before[b] if p in above]
                new = known[0]
                for p in known[1:]:
                    new = meet(new, p)
                if above.get(b) != new:
                    above[b], changed = new, True

        def dominates(a, b):
            while place[b] > place[a]:
                b = above[b]
            return a == b

        loops = {}
        for b in self.order:
            for head in self.next[b]:
                if dominates(head, b):
                    body, todo = loops.setdefault(head, {head}), [b]
                    while todo:
                        at = todo.pop()
                        if at not in body:
                            body.add(at)
                            todo += before[at]
        return list(loops.values())

    def code(self, blocks):
        return [i for b in sorted(blocks) for i in self.blocks[b]]


def moved(code):
    """Bytes of global memory, those of wide accesses counting for more: a loop over what is left over at the end of a row
    may be unrolled until it moves as much as the code before it."""
    return sum(i.bytes**2 for i in code if i.op in GLOBAL)


def way(flow):
    """The blocks, and the outermost loops, of the way from the kernel's beginning to an end that moves most bytes of global
    memory, by the fewest instructions. Loops count as one trip."""
    outermost = [loop for loop in flow.loops if not any(loop < other for other in flow.loops)]
    node_of = {b: b for b in flow.order}
    for loop in outermost:
        head = min(loop, key=flow.order.index)
        node_of.update({b: head for b in loop})
    blocks, after = {}, {}
    for b in flow.order:
        blocks.setdefault(node_of[b], []).append(b)
        after.setdefault(node_of[b], set()).update(node_of[n] for n in flow.next[b] if node_of[n] != node_of[b])
    best = {}
    for node in reversed(list(blocks)):  # in reverse post order every follower comes later
        rest = max((best[n] for n in after[node]), default=(0, 0, None, ()))
        code = flow.code(blocks[node])
        best[node] = (rest[0] + moved(code), rest[1] - len(code), node, (node, *rest[3]))
    on_way = best[node_of[0]][3]
    return [b for n in on_way for b in blocks[n]], [loop for loop in outermost if node_of[min(loop)] in on_way]


def region_of(flow):
    """(its instructions, whether it is a loop)"""
    loops = [flow.code(body) for body in flow.loops]
    tensor = [sum(i.op in TENSOR for i in loop) for loop in loops]
    if any(tensor):
        return min((loop for loop, t in zip(loops, tensor) if t == max(tensor)), key=len), True
    passed, around = way(flow)
    best, region = (moved(flow.code(set(passed) - set().union(*flow.loops))), 0), None
    for loop in flow.loops:
        if not any(loop <= whole for whole in around):
            continue
        own = flow.code(loop - set().union(*(inner for inner in flow.loops if inner < loop)))
        worth = moved(own) * TRIPS ** sum(loop <= other for other in flow.loops), -len(own)
        if worth > best:
            best, region = worth, own
    if region:
        return region, True
    return flow.code(set(passed) - set().union(*flow.loops)), False


def figures_of(code, labels):
    """code: the kernel's own instructions, labels: {name: index in code}; without called functions."""
    flow = Flow(code, labels)
    region, loop = region_of(flow)
    locals_in, locals_out = ([i for i in code if i.op == op] for op in ("LDL", "STL"))
    by_op = {}
    for i in region:
        by_op[i.op] = by_op.get(i.op, 0) + 1

    def number(ops):
        return sum(by_op.get(op, 0) for op in ops)

    matrices = {"4": 512, "2": 256}  # of LDSM, by its last modifier
    shared = sum(matrices.get(i.name.split(".")[-1], 128) if i.op == "LDSM" else 32 * i.bytes for i in region
                 if i.op in SHARED)
    imad = by_op.get("IMAD", 0)
    used = imad + number(FP32 | FP64 | SPECIAL | TENSOR | GLOBAL | NO_PIPE | SHARED | {"LDL", "STL"})
    uniform = sum(n for op, n in by_op.items() if op.startswith("U") and op not in NO_PIPE)
    return {
        "local_stores": sum(i.bytes for i in locals_out),
        "local_loads": sum(i.bytes for i in locals_in),
        "local": len(locals_in) + len(locals_out),
        "loads": widths(code, ("LDG", "LD", "LDGSTS")),
        "stores": widths(code, ("STG", "ST")),
        "generic": sum(i.op in ("LD", "ST", "ATOM") for i in code),
        "region": "loop" if loop else "straight",
        "issue": len([i for i in region if i.op != "NOP"]),
        "hmma": number(TENSOR),
        "ldsm": by_op.get("LDSM", 0),
        "convert": number(CONVERT) + sum(i.name.startswith("HADD2.F32") for i in region),
        "fp32": number(FP32),
        "imad": imad,
        "alu": len(region) - used - uniform,
        "special": number(SPECIAL),
        "fp64": number(FP64),
        "global": number(GLOBAL),
        "bytes": sum(i.bytes for i in region if i.op in GLOBAL),
        "shared_bytes": shared,
        "flight": in_flight(region),
        "uses_shared": any(i.op in SHARED for i in code),
        "traps": sum(i.op == "BPT" for i in code),  # refused on this architecture
    }


def parse(text):
    """nvdisasm's text of a whole cubin: its kernels."""
    architecture = re.search(r"\.target\s+(\w+)", text).group(1)
    kernels, shared = {}, {}
    for part in re.split(r"(?m)^//-{10,} ", text)[1:]:
        title = part.split(" ", 1)[0]
        if title.startswith(".text."):
            kernels[title[len(".text."):]] = figures_of(*_code(part))
        elif title.startswith(".nv.shared."):
            size = re.search(r"\.zero\s+(\d+)", part)
            shared[title[len(".nv.shared."):]] = int(size.group(1)) if size else 0
    info = _attributes(text)
    result = []
    for name, figures in kernels.items():
        threads = info["EIATTR_REQNTID"].get(name) or info["EIATTR_MAX_THREADS"].get(name) or 1024
        size = shared.get(name, 0)
        # From sm_90 on the object counts what the system takes as the kernel's own.
        if architecture != "sm_80" and size >= RESERVED:
            size -= RESERVED
        result.append(Kernel(name, architecture, {
            "regs": info["EIATTR_REGCOUNT"][name], "stack": info["EIATTR_FRAME_SIZE"].get(name, 0),
            "static": size, "threads": threads, **figures}))
    return result


def _code(section):
    code, labels, waiting = [], {}, []
    for line in section.split("\n"):
        label = LABEL.match(line)
        if label:
            waiting.append(label.group(1))
        elif line.startswith("$") and code:
            break  # a called function follows
        else:
            found = INSTRUCTION.match(line)
            if found:
                for w in waiting:
                    labels[w] = len(code)
                waiting = []
                predicate, name, operands = found.groups()
                code.append(Instruction(predicate not in (None, "PT", "UPT"), name, operands))
    return code, labels


def _attributes(text):
    """{attribute: {kernel: value}} from the sections .nv.info and .nv.info.KERNEL."""
    values = {"EIATTR_REGCOUNT": {}, "EIATTR_FRAME_SIZE": {}, "EIATTR_MAX_THREADS": {}, "EIATTR_REQNTID": {}}
    for section in re.split(r"(?m)^//-{10,} ", text)[1:]:
        title = section.split(" ", 1)[0]
        if not title.startswith(".nv.info"):
            continue
        for attribute in section.split("//----- nvinfo : ")[1:]:
            key = attribute.split("\n", 1)[0].strip()
            if key not in values:
                continue
            of = re.search(r"index@\(([^)]*)\)", attribute)
            words = [int(w, 16) for w in re.findall(r"\.word\s+(0x[0-9a-f]+)", attribute)]
            if of:
                values[key][of.group(1)] = words[0]
            else:  # x, y and z of a block
                values[key][title[len(".nv.info."):]] = words[0] * words[1] * words[2]
    return values
