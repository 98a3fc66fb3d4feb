//! Requests that chance makes up, and where they are posted.

use softfabric_testkit::{Side, path_to};
use softfabric_transport::{
    Datagram, LocalSegment, LocalSegments, QueuePairType, ReceiveRequest, Remote, SendFlags,
    SendOperation, SendRequest, State,
};

use crate::scene::MEMORY;
use crate::world::{Defect, Posted, QKEY, Receive, World};

impl World {
    /// Cuts a range into pieces, perhaps with an empty one whose key opens nothing.
    fn pieces(&mut self, address: u64, length: u32, key: u32) -> LocalSegments {
        let mut pieces = LocalSegments::new();
        let mut done = 0;
        for _piece in 0..self.pick(3) {
            let length = self.random.below(u64::from(length - done) + 1) as u32;
            let key = if length == 0 { 0xbad } else { key };
            pieces.push(LocalSegment {
                address: address + u64::from(done),
                length,
                key,
            });
            done += length;
        }
        pieces.push(LocalSegment {
            address: address + u64::from(done),
            length: length - done,
            key,
        });
        pieces
    }

    fn length(&mut self) -> u32 {
        let mtu = u64::from(self.scene.mtu.as_u32());
        let longest = u64::from(self.scene.longest);
        let length = match self.pick(10) {
            0 => 0,
            1..4 => self.random.below(64),
            4 => mtu * self.random.below(4),
            5 => mtu + self.random.below(3) - 1,
            _ => self.random.below(longest),
        };
        length.min(longest) as u32
    }

    /// Posts a request.
    pub(crate) fn send(&mut self, link: usize, side: Side) {
        let service = self.links[link].service;
        if service == QueuePairType::XrcInitiator && side != self.links[link].from {
            return;
        }
        let peer = 1 - side;
        let choice = match service {
            QueuePairType::UnreliableDatagram => 1,
            QueuePairType::UnreliableConnection => 1 + self.pick(3),
            _ => self.pick(7),
        };
        let atomic = choice >= 5;
        let mut length = if atomic { 8 } else { self.length() };
        if service == QueuePairType::UnreliableDatagram {
            length = length.min(4096);
        }
        let (Some(local), Some(there)) = (self.room(side, length), self.room(peer, length)) else {
            return;
        };
        let named = self.pick(2);
        if matches!(choice, 0 | 1 | 3) {
            let Some(spare) = self.room(peer, self.scene.room()) else {
                return;
            };
            self.links[link].spares[peer].push((named, spare));
        }
        self.ids += 1;
        let id = self.ids;
        let mut remote = Remote {
            address: if atomic {
                self.links[link].words[peer]
            } else {
                there
            },
            key: self.corners[peer].key,
        };
        let mut key = self.corners[side].key;
        let inline = !atomic && choice != 4 && length <= 256 && self.random.chance(0.3);
        let mut defect = Defect::None;
        if self.scene.defects && length > 0 && self.random.chance(0.04) {
            let remotely = choice >= 2 && service != QueuePairType::UnreliableDatagram;
            match self.pick(3) {
                0 if !inline => {
                    defect = Defect::Local;
                    let reads = atomic || choice == 4;
                    let weak = self.corners[side].weak_key;
                    key = if reads { weak } else { key ^ 0x20 };
                }
                1 if remotely => {
                    defect = Defect::Remote;
                    remote.key ^= 0x40;
                }
                2 if remotely && !atomic => {
                    defect = Defect::Remote;
                    remote.address = MEMORY as u64 + 1 - u64::from(length);
                }
                _ => {}
            }
        }
        if length == 0 {
            // Nobody looks at these.
            remote.key = 0xbad;
        }
        let mut number = self.corners[peer].named[named].number;
        if service == QueuePairType::XrcInitiator
            && defect == Defect::None
            && self.scene.defects
            && self.random.chance(0.03)
        {
            defect = Defect::Queue;
            number = [self.corners[peer].foreign, number ^ 1, 0][self.pick(3)];
        }
        let operation = match choice {
            0 => SendOperation::Send,
            1 => SendOperation::SendImmediate(id as u32),
            2 => SendOperation::Write(remote),
            3 => SendOperation::WriteImmediate(remote, id as u32),
            4 => SendOperation::Read(remote),
            5 => SendOperation::FetchAdd {
                remote,
                add: self.random.below(1000),
            },
            _ => SendOperation::CompareSwap {
                remote,
                compare: self.random.below(3),
                swap: self.random.below(3),
            },
        };
        let mut request = SendRequest::empty(id, operation).to_srq(number);
        request.local = self.pieces(local, length, key);
        let signaled = self.random.chance(0.8);
        if !signaled {
            request = request.unsignaled();
        }
        let solicited = self.random.chance(0.2);
        for (flag, set) in [
            (SendFlags::FENCE, self.random.chance(0.2)),
            (SendFlags::INLINE, inline),
            (SendFlags::SOLICITED, solicited),
        ] {
            request.flags.set(flag, set);
        }
        if service == QueuePairType::UnreliableDatagram {
            request = request.to(Datagram {
                path: path_to(peer),
                destination: self.links[link].qps[peer],
                qkey: QKEY,
            });
        }
        let state = self.state(link, side);
        let (now, qp) = (self.pair.now(), self.links[link].qps[side]);
        let device = &mut self.pair.ends[side].device;
        if let Err(error) = device.post_send(now, qp, request) {
            panic!("{error}");
        }
        let link = &mut self.links[link];
        link.posted[side].push(Posted {
            id,
            operation,
            length,
            local,
            remote: there,
            signaled: signaled || link.signal_all,
            solicited,
            defect,
            named,
            epoch: link.epochs[side],
            too_late: matches!(state, State::SendQueueError | State::Error),
        });
    }

    /// Posts a receive request to where a queue pair receives from, perhaps one with a defect.
    pub(crate) fn receive(&mut self, link: usize, side: Side) {
        let mut room = self.scene.room() + self.random.below(100) as u32;
        let own = self.links[link].shared[side].is_none() && !self.links[link].is_extended();
        if own && self.links[link].is_reliable() && self.scene.defects && self.random.chance(0.03) {
            room = self.random.below(u64::from(self.scene.longest)) as u32;
        }
        let named = self.pick(2);
        if let Some(address) = self.room(side, room) {
            self.post_receive(link, side, named, address, room);
        }
    }

    pub(crate) fn post_receive(
        &mut self,
        link: usize,
        side: Side,
        named: usize,
        address: u64,
        room: u32,
    ) {
        let extended = self.links[link].is_extended();
        if extended && side == self.links[link].from {
            return;
        }
        let shared = if extended {
            Some(self.corners[side].named[named].id)
        } else {
            let shared = self.links[link].shared[side];
            shared.map(|shared| self.corners[side].shared[shared].id)
        };
        let own = shared.is_none() && self.links[link].is_reliable();
        let whole = room >= self.scene.room();
        let defect = own && whole && self.scene.defects && self.random.chance(0.02);
        let corner = &self.corners[side];
        let key = if defect { corner.weak_key } else { corner.key };
        self.ids += 1;
        let id = self.ids;
        let local = self.pieces(address, room, key);
        let request = ReceiveRequest { id, local };
        let qp = self.links[link].qps[side];
        let device = &mut self.pair.ends[side].device;
        let posted = match shared {
            Some(shared) => device.post_srq_recv(shared, request),
            None => device.post_recv(qp, request),
        };
        if let Err(error) = posted {
            panic!("{error}");
        }
        let receive = Receive {
            id,
            address,
            room,
            defect,
            completed: false,
        };
        let corner = &mut self.corners[side];
        if extended {
            corner.named[named].receives.push(receive);
        } else if let Some(shared) = self.links[link].shared[side] {
            corner.shared[shared].receives.push(receive);
        } else {
            self.links[link].receives[side].push(receive);
        }
    }
}
