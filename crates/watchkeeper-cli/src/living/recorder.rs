//! Writes events, and removes the oldest, so that there are never too many.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::api::{Api, Resource, Target};
use super::clock::Clock;
use super::objects::event::Note;

/// How many notes may wait. Nobody waits for events: what is too much is not told.
const WAITING: usize = 256;

/// Takes notes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Recorder {
    notes: mpsc::Sender<Note>,
}

impl Recorder {
    /// A recorder, and the work that it needs done until `token` is cancelled.
    pub(super) fn new(
        api: Api,
        clock: Clock,
        most: usize,
        token: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (notes, waiting) = mpsc::channel(WAITING);
        (Self { notes }, write(api, clock, most, waiting, token))
    }

    /// Makes an event of a note, soon, if there is time for it.
    pub(super) fn tell(&self, note: Note) {
        let _ = self.notes.try_send(note);
    }
}

async fn write(api: Api, clock: Clock, most: usize, mut waiting: mpsc::Receiver<Note>, token: CancellationToken) {
    let mut written: VecDeque<(String, String)> = VecDeque::new();
    let mut number = clock.exact().as_nanosecond() as u64;
    let work = async {
        while let Some(note) = waiting.recv().await {
            number = number.wrapping_add(1);
            let event = note.event(number, clock.now());
            // An event that cannot be written is not worth a second try.
            if let Ok(event) = api.create(Resource::Events, note.namespace(), &event).await {
                written.push_back((event.metadata.namespace, event.metadata.name));
            }
            while written.len() > most {
                let Some((namespace, name)) = written.pop_front() else { break };
                let oldest = Target { resource: Resource::Events, namespace: &namespace, name: &name };
                let _ = api.delete(oldest, "", None).await;
            }
        }
    };
    let _ = token.run_until_cancelled(work).await;
}
