"""One case of traffic between two verbs devices: both ends do the same script and check what came of it.

    traffic.py serve                                        in the guest: takes one case after another
    traffic.py run GUEST CASE requester|responder NAME=VALUE…    on the host; the guest takes the other role

A case is a list of operations. Each end keeps a model of the memory of both, does its own part of every operation,
compares each completion, field by field, and at the end every byte of its memory with the model. A line of JSON says how
it went. The ends agree over TCP; the guest does each case in a process of its own.
"""

import json
import os
import random
import signal
import socket
import struct
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

PORT = 18600
REGION = 1 << 20
DEPTH = 64
QKEY = 0x11111111
# Where a UD receive buffer has the addresses of the packet.
GRH = 40
ACCESS = (
    e.IBV_ACCESS_LOCAL_WRITE
    | e.IBV_ACCESS_REMOTE_WRITE
    | e.IBV_ACCESS_REMOTE_READ
    | e.IBV_ACCESS_REMOTE_ATOMIC
    | e.IBV_ACCESS_MW_BIND
)
TYPES = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
SUCCESS = e.IBV_WC_SUCCESS


class Wrong(Exception):
    """Something is not as it has to be."""


class Lacking(Exception):
    """A device says that it cannot do this at all."""


class PeerStopped(Exception):
    """The other end found something."""


class Operation:
    """What one work request does, and how it has to complete."""

    def __init__(self, kind, size=8, imm=None, inv=None, fails=None, **more):
        self.kind, self.size, self.imm, self.inv = kind, size, imm, inv
        # Status at the requester and at the responder (None: no completion there).
        self.fails = fails
        # Of atomics: compare or add, and swap. Others: rkey, distance (bytes past the address), flags, room.
        self.compare_add, self.swap = more.pop("values", (0, 0))
        self.rkey = more.pop("rkey", None)
        self.distance = more.pop("distance", 0)
        self.flags = more.pop("flags", 0)
        self.room = more.pop("room", None)
        self.local = self.remote = 0
        assert not more, more

    def takes_receive(self):
        return self.kind == "send" or self.imm is not None

    def opcode(self):
        return {
            "send": e.IBV_WR_SEND_WITH_IMM if self.imm is not None
            else e.IBV_WR_SEND_WITH_INV if self.inv is not None else e.IBV_WR_SEND,
            "write": e.IBV_WR_RDMA_WRITE if self.imm is None else e.IBV_WR_RDMA_WRITE_WITH_IMM,
            "read": e.IBV_WR_RDMA_READ,
            "cas": e.IBV_WR_ATOMIC_CMP_AND_SWP,
            "faa": e.IBV_WR_ATOMIC_FETCH_AND_ADD,
        }[self.kind]

    def completion(self):
        return {
            "send": e.IBV_WC_SEND, "write": e.IBV_WC_RDMA_WRITE, "read": e.IBV_WC_RDMA_READ,
            "cas": e.IBV_WC_COMP_SWAP, "faa": e.IBV_WC_FETCH_ADD,
        }[self.kind]

    def __str__(self):
        words = [self.kind, str(self.size)]
        words += [] if self.imm is None else ["imm %#x" % self.imm]
        words += [] if self.inv is None else ["inv %#x" % self.inv]
        return " ".join(words)


def network_order(value):
    return struct.unpack("=I", struct.pack(">I", value))[0]


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def gid_of(address):
    return packed(address) if ":" in address else bytes(10) + b"\xff\xff" + packed(address)


class Channel:
    """Lines of JSON to the other end and back."""

    def __init__(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Two files: one for both directions would drop what it has read ahead at each write.
        self.reader, self.writer = connection.makefile("r"), connection.makefile("w")

    def send(self, value):
        self.writer.write(json.dumps(value) + "\n")
        self.writer.flush()

    def receive(self):
        line = self.reader.readline()
        if not line:
            raise PeerStopped("the other end is gone")
        return json.loads(line)

    def swap(self, value):
        self.send({"value": value})
        got = self.receive()
        if "value" not in got:
            raise PeerStopped(got)
        return got["value"]


class End:
    """One end of the traffic: a device, memory with its model, queue pairs."""

    def __init__(self, channel, role, options):
        self.channel, self.options = channel, options
        self.is_requester = role == "requester"
        names = ("softfabric", "the kernel")
        self.name, other = names if options["side"] == "host" else names[::-1]
        self.responder = other if self.is_requester else self.name
        self.mtu = int(options.get("mtu", 1024))
        self.context, self.gid_index = self.open_device(options["address"])
        self.pd = PD(self.context)
        self.regions = {name: MR(self.pd, REGION, ACCESS) for name in ("local", "target")}
        # What both ends have in memory; a requester's `target` and a responder's `local` are checked, too.
        self.model = {
            (who, name): bytearray(random.Random(who + name).randbytes(REGION))
            for who in ("requester", "responder")
            for name in ("local", "target")
        }
        self.role = role
        for name, region in self.regions.items():
            region.write(bytes(self.model[role, name]), REGION)
        self.cursor = {"local": 0, "target": 0, "receive": 0}
        self.qp = self.srq = self.channel_of_events = None
        self.receives = 0

    @staticmethod
    def open_device(address):
        from pyverbs.device import get_device_list

        for device in get_device_list():
            context = Context(name=device.name.decode())
            for index in range(context.query_port(1).gid_tbl_len):
                try:
                    gid = context.query_gid(1, index)
                except PyverbsError:
                    continue
                if socket.inet_pton(socket.AF_INET6, str(gid)) == gid_of(address):
                    return context, index
        raise Wrong("no device has the address " + address)

    # ---- connections

    def connect(self, transport="rc", psn=None, events=False, srq=False, rnr_retry=7, retry=7, timeout=18):
        """Makes a queue pair at each end and joins the two."""
        self.transport = transport
        kind = TYPES[transport]
        if events:
            self.channel_of_events = CompChannel(self.context)
        self.cq = CQ(self.context, 4 * DEPTH, channel=self.channel_of_events)
        capacity = QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH, max_send_sge=2, max_recv_sge=2)
        attributes = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=capacity, sq_sig_all=0)
        if srq:
            self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=DEPTH, max_sge=2)))
            attributes.srq = self.srq
        first = psn if psn is not None else (0x000100 if self.is_requester else 0x000800)
        state = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            state.qkey, state.sq_psn = QKEY, first
            self.qp = QP(self.pd, attributes, state)
        else:
            state.qp_access_flags = ACCESS
            self.qp = QP(self.pd, attributes)
        self.peer = self.channel.swap({
            "qpn": self.qp.qp_num, "psn": first, "address": self.options["address"],
            **{name: [region.buf, region.rkey] for name, region in self.regions.items()},
        })
        words = struct.unpack(">8H", gid_of(self.peer["address"]))
        route = GlobalRoute(dgid=GID(":".join("%04x" % word for word in words)), sgid_index=self.gid_index, hop_limit=64)
        self.path = AHAttr(gr=route, is_global=1, port_num=1)
        if kind == e.IBV_QPT_UD:
            self.handle = AH(self.pd, attr=self.path)
        else:
            self.qp.to_init(state)
            state.path_mtu, state.ah_attr = MTUS[self.mtu], self.path
            state.dest_qp_num, state.rq_psn = self.peer["qpn"], self.peer["psn"]
            state.max_dest_rd_atomic, state.min_rnr_timer = 4, 12
            self.qp.to_rtr(state)
            state.sq_psn, state.max_rd_atomic = first, 4
            state.timeout, state.retry_cnt, state.rnr_retry = timeout, retry, rnr_retry
            self.qp.to_rts(state)
        self.barrier()

    def barrier(self):
        self.channel.swap(0)

    # ---- operations

    def take(self, name, size, alignment=1):
        """The next place in a region: never one that was used, and oddly aligned."""
        place = self.cursor[name]
        place += -place % alignment
        self.cursor[name] = place + size + 3
        if place + size > REGION:
            raise Wrong("the case is too long for its memory")
        return place

    def run(self, operations, late=0.0):
        """Does operations at both ends: all are posted before the first is waited for, up to the queues' depth."""
        for start in range(0, len(operations), DEPTH // 2):
            self.run_some(operations[start:start + DEPTH // 2], late)

    def run_some(self, operations, late):
        receiving = [operation for operation in operations if operation.takes_receive()]
        places = {}
        for operation in operations:
            places[operation] = self.foresee(operation)
        if not self.is_requester and not late:
            self.post_receives(receiving, places)
        self.barrier()
        if self.is_requester:
            for number, operation in enumerate(operations):
                self.post(operation, number)
            for number, operation in enumerate(operations):
                self.check_sent(operation, number)
        else:
            if late:
                time.sleep(late)
                self.post_receives(receiving, places)
            for operation in receiving:
                self.check_received(operation)
        self.barrier()

    def foresee(self, operation):
        """Decides where an operation takes place and does it in the model; returns the place of its receive."""
        size = operation.size
        atomic = operation.kind in ("cas", "faa")
        operation.local = self.take("local", size)
        if operation.kind != "send":
            operation.remote = self.take("target", size, 8 if atomic else 1)
        receive = None
        if operation.takes_receive():
            prefix = GRH if self.transport == "ud" else 0
            room = operation.room if operation.room is not None else (size if operation.kind == "send" else 0)
            receive = (REGION // 2 + self.take_receive(room + prefix), room + prefix)
        if operation.fails is not None:
            return receive
        source = self.model["requester", "local"]
        target = self.model["responder", "target"]
        here, there = slice(operation.local, operation.local + size), slice(operation.remote, operation.remote + size)
        if operation.kind == "write":
            target[there] = source[here]
        elif operation.kind == "read":
            source[here] = target[there]
        elif atomic:
            old = int.from_bytes(target[there], "little")
            source[here] = target[there]
            new = (old + operation.compare_add) % 2**64
            if operation.kind == "cas":
                new = operation.swap if old == operation.compare_add else old
            target[there] = new.to_bytes(8, "little")
        else:
            prefix = GRH if self.transport == "ud" else 0
            at = receive[0]
            into = self.model["responder", "local"]
            into[at + prefix:at + prefix + size] = source[here]
        return receive

    def take_receive(self, size):
        place = self.cursor["receive"]
        self.cursor["receive"] = place + size + 3
        if place + size > REGION // 2:
            raise Wrong("the case is too long for its memory")
        return place

    def old_value(self):
        """What the next atomic finds: both ends know it."""
        place = self.cursor["target"]
        place += -place % 8
        return int.from_bytes(self.model["responder", "target"][place:place + 8], "little")

    def post_receives(self, operations, places):
        region = self.regions["local"]
        for operation in operations:
            at, length = places[operation]
            request = RecvWR(wr_id=1000 + self.receives, num_sge=1, sg=[SGE(region.buf + at, length, region.lkey)])
            (self.srq or self.qp).post_recv(request)
            operation.receive_id = 1000 + self.receives
            operation.at = at
            self.receives += 1

    def post(self, operation, number):
        region = self.regions["local"]
        flags = operation.flags | e.IBV_SEND_SIGNALED
        request = SendWR(
            wr_id=number, opcode=operation.opcode(), num_sge=1, send_flags=flags,
            sg=[SGE(region.buf + operation.local, operation.size, region.lkey)],
            imm_data=operation.inv if operation.inv is not None
            else 0 if operation.imm is None else network_order(operation.imm),
        )
        address, rkey = self.peer["target"]
        rkey = rkey if operation.rkey is None else operation.rkey
        address += operation.remote + operation.distance
        if operation.kind in ("write", "read"):
            request.set_wr_rdma(rkey, address)
        elif operation.kind in ("cas", "faa"):
            request.set_wr_atomic(rkey, address, operation.compare_add, operation.swap)
        if self.transport == "ud":
            request.set_wr_ud(self.handle, self.peer["qpn"], QKEY)
        self.qp.post_send(request)

    # ---- completions

    def completion(self, of):
        seconds = float(self.options.get("patience", 20))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            count, completions = self.cq.poll(1)
            if count:
                return completions[0]
        raise Wrong("no completion of %s in %g s" % (of, seconds))

    def expect(self, of, **fields):
        completion = self.completion(of)
        for name, (got, wanted) in fields_of(self, completion, fields):
            if got != wanted:
                raise Wrong("%s: %s is %s, not %s" % (of, name, got, wanted))
        return completion

    def check_sent(self, operation, number):
        if operation.fails is not None:
            self.expect(operation, wr_id=number, status=operation.fails[0])
            return
        more = {"byte_len": operation.size} if operation.kind == "read" else {}
        self.expect(operation, wr_id=number, status=SUCCESS, opcode=operation.completion(), **more)

    def check_received(self, operation):
        if operation.fails is not None:
            if operation.fails[1] is not None:
                self.expect(operation, wr_id=operation.receive_id, status=operation.fails[1])
            return
        prefix = GRH if self.transport == "ud" else 0
        opcode = e.IBV_WC_RECV if operation.kind == "send" else e.IBV_WC_RECV_RDMA_WITH_IMM
        flags = e.IBV_WC_WITH_IMM if operation.imm is not None else 0
        flags |= e.IBV_WC_WITH_INV if operation.inv is not None else 0
        flags |= e.IBV_WC_GRH if prefix else 0
        fields = {"wr_id": operation.receive_id, "status": SUCCESS, "opcode": opcode, "wc_flags": flags}
        fields["byte_len"] = operation.size + prefix
        fields["qp_num"] = self.qp.qp_num
        if operation.imm is not None:
            fields["imm_data"] = network_order(operation.imm)
        if operation.inv is not None:
            fields["imm_data"] = operation.inv
        if prefix:
            fields["src_qp"] = self.peer["qpn"]
        self.expect(operation, **fields)
        if prefix:
            # The addresses are no part of the message.
            found = self.regions["local"].read(prefix, operation.at)
            self.check_addresses(found)
            self.model["responder", "local"][operation.at:operation.at + prefix] = found

    def check_addresses(self, found):
        wanted = b"".join(packed(address) for address in (self.peer["address"], self.options["address"]))
        if found[-len(wanted):] != wanted:
            raise Wrong("the addresses before a datagram are %s, not %s" % (found.hex(), wanted.hex()))

    def check_silence(self):
        """No completion is left over."""
        count, completions = self.cq.poll(1)
        if count:
            raise Wrong("a completion too many: wr_id %d, status %d" % (completions[0].wr_id, completions[0].status))

    def check_memory(self):
        """Every byte is what the model says. What has no acknowledgement may still be under way for a moment."""
        for name, region in self.regions.items():
            wanted = bytes(self.model[self.role, name])
            end = time.monotonic() + 3
            while (found := region.read(REGION, 0)) != wanted and time.monotonic() < end:
                time.sleep(0.02)
            if found != wanted:
                at = next(i for i in range(REGION) if found[i] != wanted[i])
                count = sum(a != b for a, b in zip(found, wanted))
                raise Wrong("%s memory differs in %d bytes, first at %d: %s, not %s"
                            % (name, count, at, found[at:at + 8].hex(), wanted[at:at + 8].hex()))

    # ---- memory windows

    def bind(self, kind, access=e.IBV_ACCESS_REMOTE_WRITE):
        """The responder binds a window over its target; both know its rkey."""
        rkey = 0
        if not self.is_requester:
            region = self.regions["target"]
            info = MWBindInfo(region, region.buf, REGION, access)
            if kind == 1:
                self.window = getattr(self, "window", None) or MW(self.pd, e.IBV_MW_TYPE_1)
                self.qp.bind_mw(self.window, MWBind(info, wr_id=77, send_flags=e.IBV_SEND_SIGNALED))
                rkey = self.window.rkey
            else:
                self.window = MW(self.pd, e.IBV_MW_TYPE_2)
                request = SendWR(wr_id=77, opcode=e.IBV_WR_BIND_MW, num_sge=0, send_flags=e.IBV_SEND_SIGNALED)
                request.set_bind_wr(self.window, info)
                self.qp.post_send(request)
                rkey = request.rkey
            self.expect("bind", wr_id=77, status=SUCCESS, opcode=e.IBV_WC_BIND_MW)
        got = self.channel.swap(rkey)
        return got if self.is_requester else rkey

    def invalidate(self, rkey):
        if not self.is_requester:
            request = SendWR(wr_id=78, opcode=e.IBV_WR_LOCAL_INV, num_sge=0, imm_data=rkey,
                             send_flags=e.IBV_SEND_SIGNALED)
            self.qp.post_send(request)
            self.expect("local invalidate", wr_id=78, status=SUCCESS, opcode=e.IBV_WC_LOCAL_INV)
        self.barrier()


def fields_of(end, completion, fields):
    for name, wanted in fields.items():
        got = getattr(completion, name)
        if name == "wc_flags":
            # The kernel says of every message that it has a GRH, which means something for datagrams only; and it
            # writes its own number of "with invalidate", which for programs is another flag.
            if end.name == "the kernel" and got & e.IBV_WC_IP_CSUM_OK:
                got |= e.IBV_WC_WITH_INV
            got &= e.IBV_WC_WITH_IMM | e.IBV_WC_WITH_INV | (e.IBV_WC_GRH & wanted)
        if name == "status":
            got, wanted = status_name(got), status_name(wanted)
        yield name, (got, wanted)


def status_name(number):
    names = [n for n in dir(e) if n.startswith("IBV_WC_") and n.endswith(("_ERR", "SUCCESS")) and getattr(e, n) == number]
    return names[0] if names else str(number)


# ---- the cases

def sizes(end):
    """Empty, odd, one packet, and several: first, middle and last."""
    return [0, 1, 2, 3, 4, 64, end.mtu - 1, end.mtu, end.mtu + 1, 2 * end.mtu, 4 * end.mtu + 5]


def transfer(transport, kind, imm=False):
    def case(end):
        end.connect(transport)
        fitting = [size for size in sizes(end) if transport != "ud" or size <= end.mtu]
        end.run([Operation(kind, size, imm=0x11223300 + i if imm else None) for i, size in enumerate(fitting)])
    return case


def read(end):
    end.connect()
    end.run([Operation("read", size) for size in sizes(end)])
    # More at once than the responder has resources for.
    end.run([Operation("read", 3 * end.mtu) for _ in range(16)])


def atomic(end):
    end.connect()
    end.run([Operation("faa", values=(5, 0))])
    end.run([Operation("faa", values=(2**64 - 1, 0))])
    old = end.old_value()
    end.run([Operation("cas", values=(old, 0x0102030405060708))])
    end.run([Operation("cas", values=(99, 3))])
    end.run([Operation("faa", values=(number, 0)) for number in range(12)])


def mixed(end, count, longest):
    """Random operations, many at once; both ends roll the same dice."""
    dice = random.Random(longest)
    operations = []
    for number in range(count):
        kind = dice.choice(("send", "send", "write", "write", "read", "faa"))
        size = 8 if kind == "faa" else dice.choice((dice.randrange(64), dice.randrange(longest)))
        imm = dice.getrandbits(32) if kind in ("send", "write") and dice.random() < 0.4 else None
        operations.append(Operation(kind, size, imm=imm, values=(dice.getrandbits(64), 0)))
    end.run(operations)


def wrap(end):
    end.connect(psn=0xFFFFFA)
    mixed(end, 24, 4 * end.mtu)


def loss(end):
    end.connect(timeout=14)
    mixed(end, int(end.options.get("count", 48)), 6 * end.mtu)


def receiver_not_ready(end):
    end.connect()
    end.run([Operation("send", 100)], late=0.15)
    end.run([Operation("write", 3000, imm=7)], late=0.15)
    # And one that never gets ready.
    end.connect(rnr_retry=1)
    operation = Operation("send", 100, fails=(e.IBV_WC_RNR_RETRY_EXC_ERR, None))
    end.foresee(operation)
    end.barrier()
    if end.is_requester:
        end.post(operation, 0)
        end.check_sent(operation, 0)
    end.barrier()


def refused(end):
    """Each refusal ends the queue pair at the requester."""
    access = e.IBV_WC_REM_ACCESS_ERR
    too_long = (e.IBV_WC_REM_INV_REQ_ERR, e.IBV_WC_LOC_LEN_ERR)
    if end.responder == "the kernel":
        # It has words of its own for a message that is too long for its buffer.
        too_long = (e.IBV_WC_REM_OP_ERR, e.IBV_WC_LOC_QP_OP_ERR)
    for operation in (
        Operation("write", 64, rkey=0xDEAD00, fails=(access, None)),
        Operation("write", 3000, rkey=0xDEAD00, fails=(access, None)),
        Operation("read", 64, rkey=0xDEAD00, fails=(access, None)),
        Operation("faa", rkey=0xDEAD00, fails=(access, None)),
        Operation("write", 64, distance=REGION, fails=(access, None)),
        Operation("read", 64, distance=REGION - 8, fails=(access, None)),
        Operation("send", 2000, room=100, fails=too_long),
    ):
        end.connect()
        end.run([operation])


def gone(end):
    """The other queue pair is no more."""
    end.connect(timeout=10, retry=3)
    if not end.is_requester:
        end.qp.close()
    end.barrier()
    operation = Operation("write", 64, fails=(e.IBV_WC_RETRY_EXC_ERR, None))
    if end.is_requester:
        end.foresee(operation)
        end.post(operation, 0)
        end.check_sent(operation, 0)
    end.barrier()


def shared_receive_queue(end):
    end.connect(srq=True)
    end.run([Operation("send", size, imm=size) for size in (0, 1, 1000, 3 * end.mtu)])
    end.run([Operation("write", 2000, imm=1)])


def window_type_1(end):
    end.connect()
    first = end.bind(1)
    end.run([Operation("write", 100, rkey=first), Operation("write", 3000, rkey=first)])
    end.bind(1)
    end.run([Operation("write", 8, rkey=first, fails=(e.IBV_WC_REM_ACCESS_ERR, None))])


def window_type_2(end):
    end.connect()
    rkey = end.bind(2)
    end.run([Operation("write", 100, rkey=rkey), Operation("write", 3000, rkey=rkey)])
    end.run([Operation("read", 100, rkey=rkey, fails=(e.IBV_WC_REM_ACCESS_ERR, None))])


def local_invalidate(end):
    end.connect()
    rkey = end.bind(2)
    end.run([Operation("write", 100, rkey=rkey)])
    end.invalidate(rkey)
    end.run([Operation("write", 100, rkey=rkey, fails=(e.IBV_WC_REM_ACCESS_ERR, None))])


def send_invalidate(end):
    for size in (10, 3 * end.mtu):
        end.connect()
        rkey = end.bind(2)
        end.run([Operation("write", 100, rkey=rkey)])
        end.run([Operation("send", size, inv=rkey)])
        end.run([Operation("write", 100, rkey=rkey, fails=(e.IBV_WC_REM_ACCESS_ERR, None))])


def solicited(end):
    """A completion channel that waits for solicited messages hears of the second message, not of the first."""
    end.connect(events=True)
    operations = [Operation("send", 16), Operation("send", 16, flags=e.IBV_SEND_SOLICITED)]
    places = {operation: end.foresee(operation) for operation in operations}
    if not end.is_requester:
        end.post_receives(operations, places)
        end.cq.req_notify(True)
    end.barrier()
    if end.is_requester:
        for number, operation in enumerate(operations):
            end.post(operation, number)
            end.check_sent(operation, number)
            time.sleep(0.2)
    else:
        end.channel_of_events.get_cq_event(end.cq)
        end.cq.ack_events(1)
        for operation in operations:
            count, completions = end.cq.poll(1)
            if not count:
                raise Wrong("the event came before %s had arrived" % operation)
            if completions[0].wr_id != operation.receive_id or completions[0].status != SUCCESS:
                raise Wrong("wr_id %d, status %d" % (completions[0].wr_id, completions[0].status))
    end.barrier()


def extended_connections(end):
    error = None
    try:
        XRCD(end.context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
    except PyverbsError as refusal:
        error = str(refusal)
    others = end.channel.swap(error)
    if error and end.name == "softfabric":
        raise Wrong("XRC: " + error)
    for who, problem in ((end.name, error), ("the other end", others)):
        if problem:
            raise Lacking("XRC, %s: %s" % (who, problem))
    raise Wrong("both ends have XRC, and no case tries it")


CASES = {
    "rc-send": transfer("rc", "send"),
    "rc-send-imm": transfer("rc", "send", imm=True),
    "rc-send-invalidate": send_invalidate,
    "rc-write": transfer("rc", "write"),
    "rc-write-imm": transfer("rc", "write", imm=True),
    "rc-read": read,
    "rc-atomic": atomic,
    "uc-send": transfer("uc", "send"),
    "uc-send-imm": transfer("uc", "send", imm=True),
    "uc-write": transfer("uc", "write"),
    "uc-write-imm": transfer("uc", "write", imm=True),
    "ud-send": transfer("ud", "send"),
    "ud-send-imm": transfer("ud", "send", imm=True),
    "rc-psn-wrap": wrap,
    "rc-mixed": loss,
    "rc-not-ready": receiver_not_ready,
    "rc-refused": refused,
    "rc-gone": gone,
    "rc-srq": shared_receive_queue,
    "rc-window-1": window_type_1,
    "rc-window-2": window_type_2,
    "rc-local-invalidate": local_invalidate,
    "rc-solicited": solicited,
    "xrc": extended_connections,
}


# ---- processes

def do(channel, case, role, options):
    """Does one case; what came of it, for both ends."""
    verdict = {"passed": True, "lacking": None, "problem": None}
    try:
        end = End(channel, role, options)
        CASES[case](end)
        if end.qp is not None:
            end.check_memory()
            end.check_silence()
        channel.swap("done")
    except PeerStopped as stop:
        return stop.args[0] if isinstance(stop.args[0], dict) else {**verdict, "passed": False, "problem": str(stop)}
    except Lacking as lack:
        verdict.update(passed=False, lacking=str(lack))
    except Exception as error:  # whatever a device or a binding does is a finding about its end
        where = "softfabric" if options["side"] == "host" else "the kernel"
        kind = "" if isinstance(error, Wrong) else type(error).__name__ + " "
        verdict.update(passed=False, problem="at %s, %s: %s%s" % (where, role, kind, error))
    if not verdict["passed"]:
        try:
            channel.send(verdict)
        except OSError:
            pass
    return verdict


def serve():
    listener = socket.create_server(("", PORT), backlog=16)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        channel = Channel(connection)
        try:
            wish = channel.receive()
        except PeerStopped:  # it only asked whether we listen
            os._exit(0)
        signal.alarm(int(wish["options"]["limit"]))
        do(channel, wish["case"], wish["role"], wish["options"])
        os._exit(0)


def run(guest, case, role, options):
    channel = Channel(socket.create_connection((guest, PORT), timeout=None))
    theirs = {**options, "side": "guest", "address": options["theirs"]}
    other = "responder" if role == "requester" else "requester"
    channel.send({"case": case, "role": other, "options": theirs})
    print(json.dumps(do(channel, case, role, {**options, "side": "host", "address": options["ours"]})))


if sys.argv[1] == "serve":
    serve()
else:
    run(*sys.argv[2:5], dict(word.split("=", 1) for word in sys.argv[5:]))
