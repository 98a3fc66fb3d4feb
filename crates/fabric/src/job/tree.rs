//! Two binary trees over the same ranks; where their number is even, each rank is a leaf in at least one of them (P. Sanders,
//! J. Speck, J. L. Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009).

/// The parent of each rank in a binary tree in order of the ranks; the root has none.
pub(super) fn in_order(ranks: u32) -> Vec<Option<u32>> {
    (0..ranks)
        .map(|rank| {
            if rank == 0 {
                return None;
            }
            // The lowest bit says the height. Above it, at the next height, is one neighbour; past the end, the other.
            let bit = rank & rank.wrapping_neg();
            let right = (rank ^ bit) | bit << 1;
            Some(if right < ranks { right } else { rank ^ bit })
        })
        .collect()
}

/// The parents in the second tree: the first one mirrored where the number of ranks is even, shifted by one where it is
/// odd.
pub(super) fn second(ranks: u32) -> Vec<Option<u32>> {
    let first = in_order(ranks);
    let place = |rank: u32| {
        if ranks.is_multiple_of(2) {
            ranks - 1 - rank
        } else {
            (rank + 1) % ranks
        }
    };
    let mut parents = vec![None; ranks as usize];
    for (rank, parent) in (0..).zip(first) {
        parents[place(rank) as usize] = parent.map(place);
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_reaches_the_root_and_no_parent_has_more_than_two_children() {
        for ranks in 1..200 {
            for parents in [in_order(ranks), second(ranks)] {
                assert_eq!(parents.iter().filter(|parent| parent.is_none()).count(), 1);
                let mut children = vec![0; ranks as usize];
                for (rank, parent) in (0..).zip(&parents) {
                    if let Some(parent) = parent {
                        children[*parent as usize] += 1;
                    }
                    let mut at: u32 = rank;
                    let mut height = 0;
                    while let Some(parent) = parents[at as usize] {
                        at = parent;
                        height += 1;
                        assert!(height <= 2 + ranks.ilog2(), "{ranks} ranks, rank {rank}");
                    }
                }
                assert!(children.iter().all(|count| *count <= 2));
            }
        }
    }

    #[test]
    fn of_an_even_number_of_ranks_nobody_is_inside_both_trees() {
        for ranks in (2..200).step_by(2) {
            let inside = |parents: &[Option<u32>], rank: u32| parents.contains(&Some(rank));
            let trees = [in_order(ranks), second(ranks)];
            let both = |rank: &u32| trees.iter().all(|tree| inside(tree, *rank));
            assert_eq!((0..ranks).filter(both).count(), 0, "{ranks} ranks");
        }
    }
}
