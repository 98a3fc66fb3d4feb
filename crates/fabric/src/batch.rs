//! Many runs on many threads: what comes out does not depend on which thread was faster.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Does `work` for every index below `count` on up to `threads` threads, and returns what came out in the order of the indices.
/// Once `interrupt` is true no further index is begun, and what is under way may end with `None`; those have no entry.
/// `done` is told how many are done, by the thread that did the last one.
pub fn map<T: Send>(
    count: usize,
    threads: usize,
    interrupt: &AtomicBool,
    done: &(dyn Fn(usize) + Sync),
    work: &(dyn Fn(usize) -> Option<T> + Sync),
) -> Vec<Option<T>> {
    let outcomes: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        while !interrupt.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = outcomes.get(index) else {
                return;
            };
            let outcome = work(index);
            *place
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = outcome;
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(worker);
        }
        worker();
    });
    let unlocked = outcomes.into_iter().map(|outcome| {
        outcome
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    });
    unlocked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_stand_in_the_order_of_their_indices() {
        let never = AtomicBool::new(false);
        let told = AtomicUsize::new(0);
        for threads in [1, 4] {
            let squares = map(
                100,
                threads,
                &never,
                &|_| {
                    told.fetch_add(1, Ordering::Relaxed);
                },
                &|index| Some(index * index),
            );
            let wanted: Vec<_> = (0..100).map(|index| Some(index * index)).collect();
            assert_eq!(squares, wanted);
        }
        assert_eq!(told.into_inner(), 200);
    }

    #[test]
    fn an_interrupt_keeps_what_is_done() {
        let interrupt = AtomicBool::new(false);
        let outcomes = map(10, 1, &interrupt, &|_| {}, &|index| {
            interrupt.store(index == 3, Ordering::Relaxed);
            Some(index)
        });
        assert_eq!(outcomes.iter().flatten().count(), 4);
        assert_eq!(outcomes[3], Some(3));
        assert_eq!(outcomes[4], None);
    }
}
