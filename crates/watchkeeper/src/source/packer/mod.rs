//! Packs bodies behind the backs of those who hold them.
//!
//! An object travels on as soon as it was read, with its raw body, and the packer follows with a task of its own: it
//! compresses one body after the other and puts it in the raw one's place. An object that nobody holds any more at its
//! turn is skipped, so one that changes faster than it is packed is packed once. What has not had its turn is bounded: when
//! raw bodies of 8 MiB wait, reading waits too.
//!
//! What bodies are compressed against, and when that changes, is decided in [`task`]; how it is made, in [`dictionary`]; and
//! which object another is much like, so that only what differs needs to be kept, in [`models`].

pub(super) mod dictionary;
mod models;
mod task;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::coop::consume_budget;

use self::task::Task;
use crate::defaults::DICTIONARY_SAMPLE;
use crate::object::WeakObject;
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
    outbox: Mutex<Outbox>,
    /// Rings when the task is not to wait for more.
    hurry: Arc<Notify>,
    status: Arc<Mutex<Packing>>,
}

/// The way to the task.
#[derive(Default)]
struct Outbox {
    /// Once there is a task.
    sender: Option<mpsc::UnboundedSender<Message>>,
    /// What it is to be told with the next message: to wake it for each object would cost more than the object does.
    fresh: Vec<Fresh>,
}

/// What the task is told.
enum Message {
    /// Objects have come.
    Fresh(Vec<Fresh>),
    /// A list has come to its end.
    ListEnded,
}

/// An object that has come.
struct Fresh {
    object: WeakObject,
    /// For its raw body.
    permit: OwnedSemaphorePermit,
}

/// The task is woken for this many objects; for fewer when no more are at hand.
const TOGETHER: usize = 128;
/// When bodies of so many bytes wait, the task does not wait for more. (The buffers that they were read into may be larger.)
const MANY: usize = 512 << 10;

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
    /// Something is left to be done: objects wait for their turn, or a better dictionary is looked for or taken into use.
    pub busy: bool,
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
        let (outbox, hurry, status) = (Mutex::default(), Arc::default(), Arc::default());
        Self(Arc::new(Shared { room, room_bytes, sample, known, outbox, hurry, status }))
    }

    /// Takes note of an object, which may then travel on. `last` is its last state, if that is known. Waits while too much is
    /// unpacked.
    pub(super) async fn admit(&self, object: &Object, last: Option<&Object>) {
        // Who reads what is there must let others run now and then.
        consume_budget().await;
        let Some(body) = object.raw() else { return };
        // One that is larger than all the room is let through alone.
        let size = u32::try_from(body.len().min(self.0.room_bytes)).unwrap_or(u32::MAX);
        let permit = match self.0.room.clone().try_acquire_many_owned(size) {
            Ok(permit) => permit,
            Err(_) => {
                // What the task has not been told of must not be waited for.
                self.flush();
                self.0.hurry.notify_one();
                let Ok(permit) = self.0.room.clone().acquire_many_owned(size).await else { return };
                permit
            }
        };
        if let Some(base) = last.and_then(Object::base_of_next) {
            object.wait_with(base);
        }
        let fresh = Fresh { object: object.downgrade(), permit };
        let mut outbox = self.outbox();
        outbox.fresh.push(fresh);
        // Where room is short somebody may wait for it already.
        if outbox.fresh.len() >= TOGETHER || self.waiting() > self.0.room_bytes / 2 {
            self.send(&mut outbox);
        }
    }

    /// Nothing more is at hand for now: the task may begin with what there is, soon.
    pub(super) fn flush(&self) {
        self.send(&mut self.outbox());
    }

    /// A list has come to its end, or there will be none.
    pub(super) fn list_ended(&self) {
        let mut outbox = self.outbox();
        self.send(&mut outbox);
        self.tell(&mut outbox, Message::ListEnded);
        self.0.hurry.notify_one();
    }

    pub(super) fn status(&self) -> Packing {
        // What the task has not come to yet takes room. It says that it is busy before it gives room back: so room is looked at
        // first.
        let is_waited = self.waiting() > 0;
        let mut status = self.0.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        status.busy |= is_waited;
        status
    }

    /// How many bytes wait for their turn.
    fn waiting(&self) -> usize {
        self.0.room_bytes - self.0.room.available_permits()
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.0.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, outbox: &mut Outbox) {
        if !outbox.fresh.is_empty() {
            let fresh = std::mem::take(&mut outbox.fresh);
            self.tell(outbox, Message::Fresh(fresh));
            if self.waiting() >= MANY.min(self.0.room_bytes / 2) {
                self.0.hurry.notify_one();
            }
        }
    }

    /// Tells the task, and starts one if there is none: that takes a runtime, and the task ends with the runtime's end. Who
    /// drops a stream may be outside of any, and then nothing more is packed.
    fn tell(&self, outbox: &mut Outbox, message: Message) {
        let Shared { sample, known, hurry, status, .. } = &*self.0;
        if outbox.sender.as_ref().is_none_or(mpsc::UnboundedSender::is_closed) {
            outbox.sender = Handle::try_current().ok().map(|runtime| {
                let (sender, messages) = mpsc::unbounded_channel();
                runtime.spawn(Task::new(messages, hurry.clone(), known.clone(), status.clone(), *sample).run());
                sender
            });
        }
        let untold = match &outbox.sender {
            Some(sender) => {
                // The task takes that back when it has nothing left to do and no message, which it looks for under the same lock.
                let mut status = status.lock().unwrap_or_else(PoisonError::into_inner);
                let untold = sender.send(message).err().map(|error| error.0);
                status.busy |= untold.is_none();
                untold
            }
            None => Some(message),
        };
        if let Some(Message::Fresh(objects)) = untold {
            // They stay raw, but not where they were read.
            objects.iter().filter_map(|fresh| fresh.object.upgrade()).for_each(|object| object.own_body());
        }
    }
}

#[cfg(test)]
mod tests;
