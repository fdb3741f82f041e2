//! Work in a queue, without Kubernetes: three workers send mails. One fails twice and is tried again after a while, one is
//! to be sent later, and in the end all that was asked for is done.
//!
//! ```text
//! cargo run --example work_queue
//! ```

use std::time::Duration;

use anyhow::bail;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use watchkeeper::workqueue::limiter::Exponential;
use watchkeeper::workqueue::{AddOptions, RateLimitingQueue};

/// After so many failures there is no point in trying again.
const MAX_RETRIES: u32 = 5;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    in_memory().await
}

/// All of it. Nothing is needed but this process.
pub async fn in_memory() -> anyhow::Result<()> {
    let start = Instant::now();
    // A failed mail is tried again after 100 ms, then after 200, 400 and so on.
    let queue = RateLimitingQueue::new(Exponential::new(Duration::from_millis(100), Duration::from_secs(60)));
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        workers.spawn(work(queue.clone(), start));
    }

    for name in ["ada", "grace", "barbara", "ada"] {
        queue.add(name.to_owned()); // ada gets one mail: the second one is the same piece of work
    }
    queue.add_after("reminder".to_owned(), Duration::from_secs(1));
    queue.add_with("newsletter".to_owned(), AddOptions { priority: -10, ..AddOptions::default() });
    queue.add_with("alarm".to_owned(), AddOptions { priority: 10, ..AddOptions::default() });

    // A shutdown drops what waits for its time, so it comes when nothing does.
    sleep(Duration::from_secs(2)).await;
    queue.shut_down_with_drain().await;
    queue.add("too late".to_owned());
    workers.join_all().await;
    println!("{} ms: all is done", start.elapsed().as_millis());
    Ok(())
}

/// Works until the queue is shut down and empty.
async fn work(queue: RateLimitingQueue<String>, start: Instant) {
    // Until the item is dropped, at the end of each round, no other worker gets it.
    while let Ok(mail) = queue.get().await {
        let failures = queue.num_requeues(&mail);
        let result = send(&mail, failures).await;
        let at = start.elapsed().as_millis();
        match result {
            Ok(()) => {
                println!("{at} ms: {} is sent", *mail);
                queue.forget(&mail); // the next failure is the first again
            }
            Err(error) if failures < MAX_RETRIES => {
                println!("{at} ms: {}: {error}", *mail);
                queue.add_rate_limited(mail.clone());
            }
            Err(error) => {
                println!("{at} ms: {} is given up: {error}", *mail);
                queue.forget(&mail);
            }
        }
    }
}

/// Takes 10 ms, and does not work for grace the first two times.
async fn send(mail: &str, failures: u32) -> anyhow::Result<()> {
    sleep(Duration::from_millis(10)).await;
    if mail == "grace" && failures < 2 {
        bail!("the mail server is busy");
    }
    Ok(())
}
