//! An order in which nothing comes before what it waits for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers from zero on in an order in which each comes after all in `waits` of it; of those that could come next, the lowest.
///
/// # Errors
/// If there is none: numbers of which each waits for the next one, and the last one for the first.
pub(crate) fn order(waits: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    let mut left: Vec<u32> = waits.iter().map(|waits| waits.len() as u32).collect();
    let mut followers = vec![Vec::new(); waits.len()];
    for (number, waits) in (0u32..).zip(waits) {
        for before in waits {
            followers[*before as usize].push(number);
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0..waits.len() as u32)
        .filter(|number| left[*number as usize] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(number)) = ready.pop() {
        order.push(number);
        for follower in &followers[number as usize] {
            left[*follower as usize] -= 1;
            if left[*follower as usize] == 0 {
                ready.push(Reverse(*follower));
            }
        }
    }
    if order.len() == waits.len() {
        return Ok(order);
    }
    // From one that is left, back along what it waits for, one comes to the circle.
    let waiting = |number: &u32| left[*number as usize] > 0;
    let mut at = (0..waits.len() as u32).find(waiting).unwrap_or_default();
    let mut steps = vec![u32::MAX; waits.len()];
    let mut seen = Vec::new();
    while steps[at as usize] == u32::MAX {
        steps[at as usize] = seen.len() as u32;
        seen.push(at);
        let before = waits[at as usize]
            .iter()
            .copied()
            .find(|before| waiting(before));
        at = before.unwrap_or(at);
    }
    Err(seen.split_off(steps[at as usize] as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_comes_first_unless_it_waits() {
        assert_eq!(order(&[vec![], vec![], vec![]]), Ok(vec![0, 1, 2]));
        assert_eq!(order(&[vec![2], vec![0], vec![]]), Ok(vec![2, 0, 1]));
    }

    #[test]
    fn a_circle_is_named_without_what_hangs_on_it() {
        // 0 waits for 1, and 1 and 2 for each other; 3 is free.
        let circle = order(&[vec![1], vec![2], vec![1], vec![]]);
        assert_eq!(circle, Err(vec![1, 2]));
        assert_eq!(order(&[vec![0]]), Err(vec![0]));
    }
}
