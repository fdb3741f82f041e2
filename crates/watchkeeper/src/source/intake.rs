//! What every object passes on its way in.
//!
//! When an object's header has been read, it is transformed and becomes a handle; that needs no waiting, and is done where
//! the bytes are. Then it is admitted: if the cache has it already, the cache's handle travels on in its place; if not,
//! all that ever needs the raw body is done now, while it is at hand, and the packer is told. From here on nobody parses or
//! copies a body unless a user asks for it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::packer::{Known, Packer, Packing};
use super::{Keep, ListPart, Transform, WatchEvent, table};
use crate::defaults::MAX_RAW_BYTES;
use crate::object::header::{self, RawHeader};
use crate::object::{LabelSets, body_hash};
use crate::{Bookmark, Indexer, Object};

/// What a source's user has asked for.
#[derive(Clone)]
pub(super) struct IntakeOptions {
    pub(super) keep: Keep,
    pub(super) transform: Option<Transform>,
    pub(super) known: Option<Known>,
    pub(super) store: Option<Arc<Indexer<Object>>>,
    pub(super) max_raw_bytes: usize,
}

impl IntakeOptions {
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, transform: None, known: None, store: None, max_raw_bytes: MAX_RAW_BYTES }
    }
}

/// What makes a row of an object.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) cells: &'a str,
    /// See [`TableColumns::layout_of`](super::TableColumns).
    pub(super) layout: u64,
}

/// The way in, shared by all requests of a source.
pub(super) struct Intake {
    options: IntakeOptions,
    labels: Mutex<LabelSets>,
    /// There is none where bodies are kept as they are.
    packer: Option<Packer>,
}

impl Intake {
    pub(super) fn new(options: &IntakeOptions) -> Self {
        let packer = match options.keep {
            Keep::Raw => None,
            Keep::Packed | Keep::Decoded(_) => Some(Packer::new(options.max_raw_bytes, options.known.clone())),
        };
        Self { options: options.clone(), labels: Mutex::default(), packer }
    }

    /// Bodies are packed: each that is admitted has its turn soon, and is given memory of its own then if it stays raw.
    pub(super) fn packs(&self) -> bool {
        self.packer.is_some()
    }

    /// Makes the handle of an object with this header and this body, or of its row. The error says why the object cannot
    /// be used.
    pub(super) fn make(
        &self,
        header: &RawHeader<'_>,
        body: Bytes,
        row: Option<Row<'_>>,
    ) -> Result<Object, &'static str> {
        let Some(transform) = &self.options.transform else { return Ok(self.handle(header, body, row)) };
        let Some(body) = transform.apply_to(header, &body)? else { return Ok(self.handle(header, body, row)) };
        if transform.keeps_header() {
            return Ok(self.handle(header, body, row));
        }
        header::check(&body).map_err(|_| "the transform made something else than text of it")?;
        let changed: RawHeader<'_> =
            serde_json::from_slice(&body).map_err(|_| "the transform made something else than JSON of it")?;
        let is_same = changed.problem().is_none()
            && changed.key() == header.key()
            && changed.uid == header.uid
            && changed.resource_version == header.resource_version;
        if is_same {
            Ok(self.handle(&changed, body.clone(), row))
        } else {
            Err("the transform changed its name, namespace, uid or version")
        }
    }

    fn handle(&self, header: &RawHeader<'_>, body: Bytes, row: Option<Row<'_>>) -> Object {
        // Cells change with the time of day, and must not make another state of an object.
        let (hash, body) = match row {
            None => (body_hash(&*body), body),
            Some(Row { cells, layout }) => (body_hash(&(layout, &*body)), table::body(cells, &body)),
        };
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        Object::read(header, body, self.packs(), hash, &mut labels)
    }

    /// Lets a part of a list travel on.
    pub(super) async fn admit_part(&self, part: ListPart) -> ListPart {
        match part {
            ListPart::Item(object) => ListPart::Item(self.admit_listed(object).await),
            other => other,
        }
    }

    /// Lets an event of a watch travel on.
    pub(super) async fn admit_event(&self, event: WatchEvent) -> WatchEvent {
        match event {
            // Of a streaming list, perhaps.
            WatchEvent::Added(object) => WatchEvent::Added(self.admit_listed(object).await),
            WatchEvent::Modified(object) => {
                let last = self.known(&object);
                WatchEvent::Modified(self.admit(object, last.as_ref()).await)
            }
            // It will be in no index.
            WatchEvent::Deleted(object) => {
                self.pack(&object, self.known(&object).as_ref()).await;
                WatchEvent::Deleted(object)
            }
            WatchEvent::Bookmark(Bookmark { initial_events_end: true, .. }) => {
                self.list_ended();
                event
            }
            other => other,
        }
    }

    /// A list has come to its end.
    pub(super) fn list_ended(&self) {
        if let Some(packer) = &self.packer {
            packer.list_ended();
        }
    }

    /// Nothing more is at hand for now.
    pub(super) fn pause(&self) {
        if let Some(packer) = &self.packer {
            packer.flush();
        }
    }

    pub(super) fn packing(&self) -> Packing {
        self.packer.as_ref().map(Packer::status).unwrap_or_default()
    }

    /// An object that may be in the cache already.
    async fn admit_listed(&self, object: Object) -> Object {
        match self.known(&object) {
            Some(known) if known.is_same_state(&object) => known,
            known => self.admit(object, known.as_ref()).await,
        }
    }

    /// What the cache has under the object's key.
    fn known(&self, object: &Object) -> Option<Object> {
        self.options.known.as_ref()?.get_by_key(object.key())
    }

    /// `last` is the object's last state, if that is known.
    async fn admit(&self, object: Object, last: Option<&Object>) -> Object {
        if let Some(json) = object.raw() {
            if let Keep::Decoded(into) = &self.options.keep
                && let Some(decoded) = into.decode(&json)
            {
                object.keep_decoded(decoded);
            }
            if let Some(store) = &self.options.store {
                store.look_into_body(&object, &json);
            }
        }
        self.pack(&object, last).await;
        object
    }

    async fn pack(&self, object: &Object, last: Option<&Object>) {
        if let Some(packer) = &self.packer {
            packer.admit(object, last).await;
        }
    }
}
