//! Waiting for the first list.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;

use tokio::time::Instant;

use super::core::{Core, Partition};
use crate::defaults::SYNC_REFUSALS;
use crate::{Error, ErrorKind};

impl Core {
    /// Returns when each partition has had its first list; or with what keeps one from it.
    pub(crate) async fn wait_synced(&self) -> Result<(), Error> {
        // Who asks after a refusal, perhaps because something has been done about it, waits for another answer.
        let refusals: Vec<u32> = self.partitions.iter().map(|partition| partition.refusals.load(Relaxed)).collect();
        // Objects received are progress. How many is looked at now and then.
        let (look, mut last_progress, mut seen) = (self.sync_timeout / 8, Instant::now(), self.received());
        // One for all rounds: refusals that come often shall not put it off.
        let mut next_look = pin!(tokio::time::sleep(look));
        loop {
            let mut refused = pin!(self.refused.notified());
            refused.as_mut().enable();
            if let Some(refusal) = self.refusal(&refusals) {
                return Err(refusal);
            }
            tokio::select! {
                biased;
                () = self.processor.synced.raised() => return Ok(()),
                () = self.stopped.raised() => return Err(self.is_over("there will be no list")),
                () = &mut refused => {}
                () = &mut next_look => {
                    next_look.as_mut().reset(crate::source::later(Instant::now(), look));
                    let received = self.received();
                    if received != seen {
                        (seen, last_progress) = (received, Instant::now());
                    } else if last_progress.elapsed() >= self.sync_timeout {
                        return Err(self.no_progress());
                    }
                }
            }
        }
    }

    /// What has come of the lists that are still to come. Anything else than the last time means progress: that one of
    /// them is there, too.
    fn received(&self) -> u64 {
        let of = |(_, partition): (usize, &Partition)| {
            let status = partition.status.get();
            status.listed_objects + status.events
        };
        self.without_list().map(of).sum()
    }

    /// The partitions that have not had their first list.
    fn without_list(&self) -> impl Iterator<Item = (usize, &Partition)> {
        self.partitions.iter().enumerate().filter(|(at, _)| !self.processor.is_partition_synced(*at))
    }

    /// The server has refused a first list so often that waiting is no use, the last time since `before`.
    fn refusal(&self, before: &[u32]) -> Option<Error> {
        if self.processor.synced.is_raised() {
            return None;
        }
        let is_refused = |((at, partition), before): &((usize, &Partition), &u32)| {
            let refusals = partition.refusals.load(Relaxed);
            refusals >= SYNC_REFUSALS && refusals != **before && !self.processor.is_partition_synced(*at)
        };
        let ((_, refused), _) = self.partitions.iter().enumerate().zip(before).find(is_refused)?;
        // It says which request, what the server answered, and what to do.
        refused.status.get().last_error.map(|(error, _)| error)
    }

    fn no_progress(&self) -> Error {
        let (name, timeout) = (&self.name, self.sync_timeout);
        if !self.is_started() {
            return Error::new(
                ErrorKind::NotSynced,
                format_args!(
                    "the informer of {name} has not been started for {timeout:?}: call start() of it or of its factory, again \
                     if it was added since the last time"
                ),
            );
        }
        let describe = |(_, partition): (usize, &Partition)| {
            let status = partition.status.get();
            let error = status.last_error.map_or_else(String::new, |(error, _)| format!(", after the error: {error}"));
            format!("{}: {:?}, {} objects so far{error}", partition.description, status.phase, status.listed_objects)
        };
        let waiting: Vec<String> = self.without_list().map(describe).collect();
        Error::new(
            ErrorKind::NotSynced,
            format_args!(
                "the informer of {name} has not received anything for {timeout:?}, and goes on trying ({})",
                waiting.join("; ")
            ),
        )
    }
}
