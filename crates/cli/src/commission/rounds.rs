//! Who measures with whom, and when: rounds in which no host is in two pairs.
//!
//! ```text
//!          0 ─ 1   2   3        the circle method: host 0 stays, the others move on by one place a round,
//!            ╲   ╳   ╱          and whoever stand opposite each other are a pair
//!          7   6   5   4
//! ```

/// The rounds in which hosts are measured: all pairs, or all at once in a ring.
pub(super) fn of(hosts: usize, in_ring: bool) -> Vec<Vec<(usize, usize)>> {
    match in_ring {
        true => vec![ring(hosts)],
        false => pairs(hosts),
    }
}

/// The pairs of each round; every two of `hosts` meet once. Of an odd number one rests in each round.
fn pairs(hosts: usize) -> Vec<Vec<(usize, usize)>> {
    let places = hosts + hosts % 2;
    if hosts < 2 {
        return Vec::new();
    }
    let at = |round: usize, place: usize| match place {
        0 => 0,
        place => 1 + (place - 1 + round) % (places - 1),
    };
    let round = |round: usize| {
        let opposite =
            (0..places / 2).map(|place| (at(round, place), at(round, places - 1 - place)));
        opposite.filter(|&(a, b)| a < hosts && b < hosts).collect()
    };
    (0..places - 1).map(round).collect()
}

/// One round: each host sends to the next, the last one to the first.
fn ring(hosts: usize) -> Vec<(usize, usize)> {
    match hosts {
        0 | 1 => Vec::new(),
        _ => (0..hosts).map(|host| (host, (host + 1) % hosts)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_two_meet_once_and_nobody_is_in_two_pairs() {
        for hosts in 0..=13 {
            let rounds = pairs(hosts);
            let expected = match hosts {
                0 | 1 => 0,
                even if even % 2 == 0 => even - 1,
                odd => odd,
            };
            assert_eq!(rounds.len(), expected, "{hosts}");
            let mut met = BTreeSet::new();
            for round in rounds {
                let mut busy = BTreeSet::new();
                for (a, b) in round {
                    assert!(a != b && busy.insert(a) && busy.insert(b), "{hosts}");
                    assert!(
                        met.insert((a.min(b), a.max(b))),
                        "{a} and {b} of {hosts} again"
                    );
                }
            }
            assert_eq!(met.len(), hosts * hosts.saturating_sub(1) / 2);
        }
    }
}
