//! What items take that wait in a work queue. A binary of its own with one test, because it measures the whole process.

use std::time::Duration;

use peak_alloc::PeakAlloc;
use watchkeeper::workqueue::DelayingQueue;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// What an item may take besides itself.
const EACH: usize = 150;

/// How many threads there are, where that can be asked.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Fills a queue. Returns it, what each item takes now, and what it took at most on the way.
fn fill(items: u64) -> (DelayingQueue<u64>, usize, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let queue = DelayingQueue::new();
    for item in 0..items {
        // In no particular order.
        queue.add_after(item, Duration::from_secs(3600 + item.wrapping_mul(2_654_435_761) % 3600));
    }
    assert_eq!(queue.waiting_len() as u64, items);
    let each = |bytes: usize| (bytes - before) / items as usize - size_of::<u64>();
    (queue, each(HEAP.current_usage()), each(HEAP.peak_usage()))
}

#[tokio::test(start_paused = true)]
async fn a_million_items_that_wait_take_150_bytes_each_at_most_and_none_when_they_are_gone() {
    let (threads_before, before) = (threads(), HEAP.current_usage());
    // The smaller number has just outgrown what was allocated.
    for items in [1_000_000, 66_000] {
        let (queue, each, peak) = fill(items);
        println!("{items} items: {each} bytes each, {peak} at most on the way");
        assert!(each <= EACH && peak <= EACH * 3 / 2, "{items} items: {each} bytes each, {peak} at most on the way");
        if items == 1_000_000 {
            assert_eq!(threads(), threads_before, "none that keeps the time");
        }
        queue.shut_down();
        assert!(HEAP.current_usage() < before + MIB, "{} bytes after a shutdown", HEAP.current_usage() - before);
    }

    // What has been worked on is given back too, though the queue lives on.
    let (queue, ..) = fill(20_000);
    tokio::time::advance(Duration::from_secs(7200)).await;
    assert_eq!(queue.len(), 20_000);
    while let Ok(Some(item)) = queue.try_get() {
        item.done();
    }
    assert!(HEAP.current_usage() < before + MIB, "{} bytes when it is empty", HEAP.current_usage() - before);
}
