//! Work on the rows of a matrix, on all processors. Rows do not see each other, so the result does not depend on how many.

use std::num::NonZero;
use std::thread;

/// Calls `work` with each row of `rows` and its number.
pub(super) fn rows<T: Send>(matrix: &mut [T], width: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    if matrix.is_empty() || width == 0 {
        return;
    }
    let count = matrix.len() / width;
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(count);
    let share = count.div_ceil(threads);
    thread::scope(|scope| {
        for (part, chunk) in matrix.chunks_mut(share * width).enumerate() {
            let work = &work;
            scope.spawn(move || {
                for (row, cells) in chunk.chunks_mut(width).enumerate() {
                    work(part * share + row, cells);
                }
            });
        }
    });
}
