//! Which process gets which datagram: a program for the kernel's group of sockets that share the port.
//!
//! ```text
//! BTH byte 5: destination queue pair, upper 8 bits = slot of a process ──► place of its socket in the group
//! first byte 0xff (no opcode): a probe ──► the place that its second byte names
//! ```
//!
//! The kernel numbers the sockets of a group in the order in which they were bound, and when one is closed, the last
//! moves into its place. So whoever joins or leaves sets a new program. Who is killed cannot: then datagrams land at
//! the wrong process, which notices and takes a census.

/// The first byte of a probe; opcodes of 0xc0 and above belong to manufacturers, and the table knows none of them.
pub(crate) const PROBE: u8 = 0xff;

/// Where the upper byte of the destination queue pair is in a BTH.
const SLOT_BYTE: u32 = 5;

/// The program for sockets that belong to `order`'s slots; slot 0 there is a socket whose owner is not known.
/// Management packets (queue pairs 0 and 1 have slot 0) go to the lowest slot.
pub(crate) fn program(order: &[u8]) -> Vec<libc::sock_filter> {
    let known = order.iter().enumerate().filter(|(_, slot)| **slot != 0);
    let manager = known.clone().min_by_key(|(_, slot)| **slot);
    let mut program = vec![
        load_byte(0),
        // A probe: its second byte is the answer.
        jump_if_equal(u32::from(PROBE), 0, 2),
        load_byte(1),
        return_accumulator(),
        load_byte(SLOT_BYTE),
    ];
    let managed = manager.map(|(place, _)| (place, &0));
    for (place, slot) in known.chain(managed) {
        program.push(jump_if_equal(u32::from(*slot), 0, 1));
        program.push(return_constant(place as u32));
    }
    // No such place: the kernel chooses one by its hash, and that process hands the datagram on.
    program.push(return_constant(u32::MAX));
    program
}

/// What the group looks like when a socket was closed.
pub(crate) fn without(order: &[u8], slot: u8) -> Vec<u8> {
    let mut order = order.to_vec();
    if let Some(place) = order.iter().position(|other| *other == slot) {
        order.swap_remove(place);
    }
    order
}

fn load_byte(at: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, at)
}

fn jump_if_equal(value: u32, yes: u8, no: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
}

fn return_constant(value: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value)
}

fn return_accumulator() -> libc::sock_filter {
    const BPF_A: u32 = 0x10;
    instruction(libc::BPF_RET | BPF_A, 0, 0, 0)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel does.
    fn run(program: &[libc::sock_filter], packet: &[u8]) -> u32 {
        let mut accumulator = 0;
        let mut at = 0;
        loop {
            let step = &program[at];
            at += 1;
            match u32::from(step.code) {
                0x30 => match packet.get(step.k as usize) {
                    Some(byte) => accumulator = u32::from(*byte),
                    None => return 0,
                },
                0x15 if accumulator == step.k => at += usize::from(step.jt),
                0x15 => at += usize::from(step.jf),
                0x06 => return step.k,
                0x16 => return accumulator,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    fn packet(slot: u8) -> [u8; 12] {
        [4, 0, 0xff, 0xff, 0, slot, 0, 1, 0, 0, 0, 0]
    }

    #[test]
    fn slots_lead_to_places() {
        let program = program(&[7, 3, 0, 9]);
        for (slot, place) in [(7, 0), (3, 1), (9, 3), (0, 1), (5, u32::MAX)] {
            assert_eq!(run(&program, &packet(slot)), place, "slot {slot}");
        }
        let mut probe = packet(7);
        (probe[0], probe[1]) = (PROBE, 2);
        assert_eq!(run(&program, &probe), 2);
        assert_eq!(run(&program, &[4, 0]), 0, "too short to have a slot");
    }

    #[test]
    fn the_last_moves_into_the_gap() {
        assert_eq!(without(&[1, 2, 3, 4], 2), [1, 4, 3]);
        assert_eq!(without(&[1, 2, 3, 4], 4), [1, 2, 3]);
        assert_eq!(without(&[1], 9), [1]);
    }

    #[test]
    fn every_slot_fits_a_program() {
        let order: Vec<u8> = (1..=254).collect();
        assert!(program(&order).len() <= 4096);
    }
}
