//! Packs bodies behind the backs of those who hold them.
//!
//! An object travels on as soon as it was read, with its raw body, and the packer follows with a task of its own: it
//! compresses one body after the other and puts it in the raw one's place. An object that nobody holds any more at its
//! turn is skipped, so one that changes faster than it is packed is packed once. What has not had its turn is bounded: when
//! raw bodies of 8 MiB wait, reading waits too.
//!
//! What bodies are compressed against, and when that changes, is decided in [`task`]; how it is made, in [`dictionary`].

pub(super) mod dictionary;
mod task;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::task::Task;
use crate::defaults::DICTIONARY_SAMPLE;
use crate::object::WeakObject;
use crate::object::packed::Packed;
use crate::{KnownObjects, Object};

/// The packer of a source. Clones are the same; its task ends with the last of them.
#[derive(Clone)]
pub(super) struct Packer(Arc<Shared>);

struct Shared {
    /// Bytes that may wait.
    room: Arc<Semaphore>,
    room_bytes: usize,
    /// The first dictionary is made of this many bytes of bodies.
    sample: usize,
    known: Option<Known>,
    /// To the task, once there is one.
    sender: Mutex<Option<mpsc::UnboundedSender<Message>>>,
    status: Arc<Mutex<Packing>>,
}

/// What the task is told.
enum Message {
    /// An object has come. The permit is for its raw body; and this is its last state, packed.
    Fresh(WeakObject, OwnedSemaphorePermit, Option<Packed>),
    /// A list has come to its end.
    ListEnded,
}

/// How the packing of a source's objects goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packing {
    /// How many objects were packed so far.
    pub packed: u64,
    /// How many of them were packed again, against a newer dictionary.
    pub repacked: u64,
    /// How many objects were gone when their turn came.
    pub skipped: u64,
    /// How many dictionaries there have been.
    pub generation: u32,
    /// How many are in use: at most two.
    pub dictionaries: usize,
    /// What those take in memory, all of it zstd's.
    pub dictionary_bytes: usize,
}

pub(super) type Known = Arc<dyn KnownObjects<Object>>;

impl Packer {
    /// A packer that lets `max_raw_bytes` wait. `known` is where the objects end up, if that is known: what was packed
    /// against an old dictionary is found there.
    pub(super) fn new(max_raw_bytes: usize, known: Option<Known>) -> Self {
        // A part of the room is for the objects that the first dictionary is made of.
        let sample = DICTIONARY_SAMPLE.min(max_raw_bytes / 2);
        let room_bytes = (max_raw_bytes - sample - sample / 8).clamp(1, u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(room_bytes));
        Self(Arc::new(Shared { room, room_bytes, sample, known, sender: Mutex::default(), status: Arc::default() }))
    }

    /// Takes note of an object, which may then travel on. `last` is its last state, if that is known. Waits while too much is
    /// unpacked.
    pub(super) async fn admit(&self, object: &Object, last: Option<&Object>) {
        let Some(body) = object.raw() else { return };
        // One that is larger than all the room is let through alone.
        let size = u32::try_from(body.len().min(self.0.room_bytes)).unwrap_or(u32::MAX);
        let Ok(permit) = self.0.room.clone().acquire_many_owned(size).await else { return };
        self.tell(Message::Fresh(object.downgrade(), permit, last.and_then(Object::packed)));
    }

    /// A list has come to its end, or there will be none.
    pub(super) fn list_ended(&self) {
        self.tell(Message::ListEnded);
    }

    pub(super) fn status(&self) -> Packing {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the task, and starts one if there is none: that takes a runtime, and the task ends with the runtime's end.
    fn tell(&self, message: Message) {
        let Shared { sample, known, sender, status, .. } = &*self.0;
        let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
        let started = sender.take().filter(|sender| !sender.is_closed()).unwrap_or_else(|| {
            let (sender, messages) = mpsc::unbounded_channel();
            tokio::spawn(Task::new(messages, known.clone(), status.clone(), *sample).run());
            sender
        });
        let _ = started.send(message);
        *sender = Some(started);
    }
}

#[cfg(test)]
mod tests;
