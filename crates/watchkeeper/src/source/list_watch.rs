//! Lists and watches over HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use futures::stream;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube_client::Client;
use kube_client::client::Body;
use kube_core::ApiResource;

use super::decode::ExpectedKind;
use super::intake::{Intake, IntakeOptions};
use super::list_reader::ListReader;
use super::watch_reader::WatchReader;
use super::{
    Keep, ListOptions, ListPart, ListerWatcher, Listing, Packing, PartitionSource, StreamingLists, TableColumns,
    Transform, WatchEvent, WatchStream, body,
};
use crate::defaults::MAX_FRAME;
use crate::{Error, ErrorKind, Indexer, Kind, KnownObjects, Object};

/// Which objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// Those of all namespaces, or of a cluster-scoped kind.
    #[default]
    All,
    /// Those of one namespace.
    Namespace(String),
    /// Those of several namespaces: a source each, see [`ListWatch::partitions`].
    Namespaces(BTreeSet<String>),
}

/// A kind of a cluster, listed and watched with a `kube::Client`: client-go's `ListWatch`.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper::ListWatch;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = watchkeeper::client(kube_client::Config::infer().await?)?;
/// let web = ListWatch::of::<Pod>(client.clone()).namespace("shop").labels("app=web");
/// let certificates = ListWatch::by_name(client, "cert-manager.io", "v1", "certificates").metadata_only();
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ListWatch {
    client: Client,
    resource: ApiResource,
    scope: Scope,
    metadata_only: bool,
    table: bool,
    columns: TableColumns,
    label_selector: Option<String>,
    field_selector: Option<String>,
    tweak: Option<Arc<Tweak>>,
    max_frame: usize,
    streaming: StreamingLists,
    intake_options: IntakeOptions,
    /// What objects pass on their way in, made of the options when it is first needed. Clones share it.
    intake: Arc<OnceLock<Arc<Intake>>>,
}

pub(crate) type Tweak = dyn Fn(&mut ListOptions) + Send + Sync;

impl ListWatch {
    /// The kind that `resource` describes.
    ///
    /// Any client will do. With one of [`watchkeeper::client`](crate::client)'s, dead peers are noticed, errors come
    /// out at once, and answers are compressed.
    pub fn new(client: Client, resource: ApiResource) -> Self {
        let intake_options = IntakeOptions::new(Keep::default_for(&resource));
        Self {
            client,
            resource,
            scope: Scope::All,
            metadata_only: false,
            table: false,
            columns: TableColumns::default(),
            label_selector: None,
            field_selector: None,
            tweak: None,
            max_frame: MAX_FRAME,
            streaming: StreamingLists::default(),
            intake_options,
            intake: Arc::default(),
        }
    }

    /// The kind of a Rust type.
    pub fn of<K: Kind>(client: Client) -> Self {
        Self::new(client, K::resource())
    }

    /// A kind of which only the names in its URL are known: client-go's `NewListWatchFromClient`. The core group is `""`.
    pub fn by_name(client: Client, group: &str, version: &str, plural: &str) -> Self {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
        Self::new(client, ApiResource { group, version, api_version, kind: String::new(), plural })
    }

    /// Only objects of one namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.scope(Scope::Namespace(namespace.into()))
    }

    /// Only objects of this scope.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Only objects with these labels, in the server's grammar.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Only objects with these fields, in the server's grammar.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// Of each object its metadata alone.
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Of each object also what the server would show of it: the cells of its row in a Table.
    ///
    /// Objects decode into a [`TableRow`](crate::TableRow), and their [JSON](Object::json) is `{"cells":[..],"object":{..}}`:
    /// [fields](crate::Index::field) for an index begin with `/object`. Transforms see the object alone. If the server
    /// has no Tables, there are rows without cells. With [`metadata_only`](Self::metadata_only) a row has that of its object.
    ///
    /// Cells that say how old an object is change with time. That alone is no change of the object: nobody is told.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watchkeeper::{Index, ListWatch, SharedInformer, TableRow, Transform};
    /// # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let source = ListWatch::of::<Pod>(client).table().transform(Transform::strip_managed_fields());
    /// let columns = source.columns();
    /// let pods = SharedInformer::<TableRow<Pod>>::new(source);
    /// pods.add_index("node", Index::field("/object/spec/nodeName")).await?;
    /// # Ok(()) }
    /// ```
    pub fn table(mut self) -> Self {
        self.table = true;
        self
    }

    /// The columns of the cells of a [`table`](Self::table). Those of all clones and partitions are one.
    pub fn columns(&self) -> TableColumns {
        self.columns.clone()
    }

    /// Changes the options of each request, last: client-go's `TweakListOptionsFunc`.
    pub fn tweak(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// The largest object that is read, in bytes of JSON; 16 MiB by default. A larger one is skipped and reported.
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
    }

    /// How bodies are kept; [`Keep::Packed`] by default, [`Keep::Raw`] for Secrets.
    pub fn keep(self, keep: Keep) -> Self {
        self.with_intake(|options| options.keep = keep)
    }

    /// Changes each object, once, before anything else sees it.
    pub fn transform(self, transform: Transform) -> Self {
        self.with_intake(|options| options.transform = Some(transform))
    }

    /// Where the objects end up. An object that is listed again and has not changed then travels as the handle that is
    /// there already, so that a relist costs no memory; and what was packed long ago can be packed better.
    pub fn known_objects(self, known: impl KnownObjects<Object> + 'static) -> Self {
        self.with_intake(|options| options.known = Some(Arc::new(known)))
    }

    /// The objects end up in this store. Besides what [`known_objects`](Self::known_objects) does, what its indexes need to
    /// know of bodies is found out on the way in, so that nobody has to unpack a body for that later.
    pub fn for_store(self, store: &Arc<Indexer<Object>>) -> Self {
        self.known_objects(store.clone()).with_intake(|options| options.store = Some(store.clone()))
    }

    /// How many bytes of bodies may wait to be packed; 8 MiB by default. Beyond that, reading waits. A larger object is
    /// let through alone.
    pub fn max_raw_bytes(self, bytes: usize) -> Self {
        self.with_intake(|options| options.max_raw_bytes = bytes)
    }

    /// How the packing of bodies goes, of what this source and its clones have brought. What an informer was made of has
    /// become the informer's: ask that one, with [`SharedInformer::packing`](crate::SharedInformer::packing).
    pub fn packing(&self) -> Packing {
        self.intake().packing()
    }

    /// Shares what another source of the same server and kind has learnt of streaming lists.
    pub fn share_streaming_lists(mut self, with: &StreamingLists) -> Self {
        self.streaming = with.clone();
        self
    }

    /// A source for each namespace of the scope; one, if the scope is not several namespaces.
    ///
    /// There is no request that lists several namespaces, so each is listed and watched by itself.
    pub fn partitions(self) -> Vec<Self> {
        match self.scope.clone() {
            Scope::Namespaces(namespaces) => {
                namespaces.into_iter().map(|namespace| self.clone().namespace(namespace)).collect()
            }
            Scope::All | Scope::Namespace(_) => vec![self],
        }
    }

    /// The kind that is listed and watched.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    fn with_intake(mut self, change: impl FnOnce(&mut IntakeOptions)) -> Self {
        change(&mut self.intake_options);
        self.intake = Arc::default();
        self
    }

    fn intake(&self) -> &Arc<Intake> {
        self.intake.get_or_init(|| Arc::new(Intake::new(&self.intake_options)))
    }

    fn expected(&self) -> ExpectedKind {
        let kind = if self.metadata_only { ExpectedKind::metadata() } else { ExpectedKind::of(&self.resource) };
        if self.table { kind.in_rows(self.columns.clone()) } else { kind }
    }

    fn path(&self) -> Result<String, Error> {
        let ApiResource { group, version, plural, .. } = &self.resource;
        let segment = |name: &str, text: &str| match text {
            "" => Err(Error::new(ErrorKind::Config, format_args!("the {name} of the resource is empty"))),
            "." | ".." => Err(Error::new(ErrorKind::Config, format_args!("{text:?} is no {name}"))),
            // Nothing that a name may hold needs encoding; whatever does would change the path.
            _ if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) => {
                Ok(text.to_owned())
            }
            _ => Err(Error::new(ErrorKind::Config, format_args!("{text:?} is no {name}"))),
        };
        let (version, plural) = (segment("version", version)?, segment("plural", plural)?);
        let root = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{}/{version}", segment("group", group)?),
        };
        match &self.scope {
            Scope::All => Ok(format!("{root}/{plural}")),
            Scope::Namespace(namespace) => {
                Ok(format!("{root}/namespaces/{}/{plural}", segment("namespace", namespace)?))
            }
            Scope::Namespaces(_) => Err(Error::new(
                ErrorKind::Config,
                "several namespaces are listed and watched one by one: use ListWatch::partitions",
            )),
        }
    }

    async fn send(&self, mut options: ListOptions, verb: &str) -> Result<Body, Error> {
        options.label_selector = options.label_selector.or_else(|| self.label_selector.clone());
        options.field_selector = options.field_selector.or_else(|| self.field_selector.clone());
        if self.table {
            let object = if self.metadata_only { "Metadata" } else { "Object" };
            options.extra.push(("includeObject".to_owned(), object.to_owned()));
        }
        if let Some(tweak) = &self.tweak {
            tweak(&mut options);
        }
        let during = |error: Error| error.during(format!("{verb} {}", self.description()));
        let mut uri = self.path().map_err(during)?;
        let query = options.query(verb == "watch");
        if !query.is_empty() {
            uri = format!("{uri}?{query}");
        }
        let accept = match (self.metadata_only, verb) {
            (false, _) => "application/json",
            (true, "watch") => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (true, _) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        };
        let table = if self.table { "application/json;as=Table;v=v1;g=meta.k8s.io," } else { "" };
        let request = http::Request::get(uri)
            .header(ACCEPT, format!("{table}{accept}"))
            // Our own client replaces this; of a foreign one's decoder it is not known whether it reads past the first
            // member of a gzip stream, of which a watch has one per event.
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| during(Error::transport(ErrorKind::Config, &error)))?;
        let response =
            self.client.send(request).await.map_err(|error| during(Error::transport(ErrorKind::Connect, &error)))?;
        body::accept(response).await.map_err(during)
    }
}

impl ListerWatcher for ListWatch {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async move {
            let body = self.send(options, "list").await?;
            let intake = self.intake().clone();
            let reader = ListReader::new(self.expected(), intake.clone(), self.max_frame);
            let page = Page { body, reader, intake, request: format!("list {}", self.description()), is_last: true };
            Ok(Listing::new(stream::unfold(Some(page), |page| async move {
                let mut page = page?;
                match page.next().await {
                    Ok(Some(part)) => Some((Ok(part), Some(page))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error.during(page.request.as_str())), None)),
                }
            })))
        })
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        Box::pin(async move {
            let is_list = options.send_initial_events == Some(true);
            let body = self.send(options, "watch").await?;
            let intake = self.intake().clone();
            if !is_list {
                intake.list_ended();
            }
            let reader = WatchReader::new(self.expected(), intake.clone(), self.max_frame);
            let watch = Watch { body, reader, intake, request: format!("watch {}", self.description()) };
            Ok(WatchStream::new(stream::unfold(Some(watch), |watch| async move {
                let mut watch = watch?;
                match watch.next().await {
                    Ok(Some(WatchEvent::Error(error))) => {
                        Some((Ok(WatchEvent::Error(error.during(watch.request.as_str()))), Some(watch)))
                    }
                    Ok(Some(event)) => Some((Ok(event), Some(watch))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error.during(watch.request.as_str())), None)),
                }
            })))
        })
    }

    fn description(&self) -> String {
        let ApiResource { group, plural, .. } = &self.resource;
        let mut text = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        match &self.scope {
            Scope::All => {}
            Scope::Namespace(namespace) => text.push_str(&format!(" in namespace {namespace}")),
            Scope::Namespaces(namespaces) => text.push_str(&format!(" in {} namespaces", namespaces.len())),
        }
        text
    }

    fn streaming_lists(&self) -> Option<&StreamingLists> {
        Some(&self.streaming)
    }

    fn packing(&self) -> Packing {
        self.intake().packing()
    }

    fn namespaces(&self) -> Vec<Arc<str>> {
        match &self.scope {
            Scope::Namespaces(namespaces) => namespaces.iter().map(|name| name.as_str().into()).collect(),
            Scope::All | Scope::Namespace(_) => Vec::new(),
        }
    }

    fn into_partitions(self, store: &Arc<Indexer<Object>>) -> Vec<PartitionSource> {
        let by_itself = |source: Self| PartitionSource {
            namespace: match &source.scope {
                Scope::Namespace(namespace) => Some(namespace.as_str().into()),
                Scope::All | Scope::Namespaces(_) => None,
            },
            source: Arc::new(source),
        };
        self.for_store(store).partitions().into_iter().map(by_itself).collect()
    }
}

/// The answer to a list, while it is being read.
struct Page {
    body: Body,
    reader: ListReader,
    intake: Arc<Intake>,
    request: String,
    /// Nothing was said of another.
    is_last: bool,
}

impl Page {
    async fn next(&mut self) -> Result<Option<ListPart>, Error> {
        match self.read().await? {
            Some(part) => {
                if let ListPart::Metadata(metadata) = &part {
                    self.is_last = metadata.continue_token.is_none();
                }
                Ok(Some(self.intake.admit_part(part).await))
            }
            None => {
                if self.is_last {
                    self.intake.list_ended();
                }
                Ok(None)
            }
        }
    }

    async fn read(&mut self) -> Result<Option<ListPart>, Error> {
        if let Some(part) = self.reader.next_part()? {
            return Ok(Some(part));
        }
        if self.reader.has_ended() {
            return Ok(None);
        }
        match body::next_piece_or(&mut self.body, || self.intake.pause()).await? {
            Some(piece) => {
                self.reader.push(&piece);
                Ok(Some(self.reader.next_part()?.unwrap_or(ListPart::Progress)))
            }
            None => {
                self.reader.end();
                self.reader.next_part()
            }
        }
    }
}

/// The answer to a watch, while it is being read.
struct Watch {
    body: Body,
    reader: WatchReader,
    intake: Arc<Intake>,
    request: String,
}

impl Watch {
    async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        match self.read().await? {
            Some(event) => Ok(Some(self.intake.admit_event(event).await)),
            None => Ok(None),
        }
    }

    async fn read(&mut self) -> Result<Option<WatchEvent>, Error> {
        if let Some(event) = self.reader.next_event()? {
            return Ok(Some(event));
        }
        if self.reader.has_ended() {
            return Ok(None);
        }
        match body::next_piece_or(&mut self.body, || self.intake.pause()).await? {
            Some(piece) => {
                self.reader.push(piece);
                Ok(Some(self.reader.next_event()?.unwrap_or(WatchEvent::Progress)))
            }
            None => {
                self.reader.end();
                self.reader.next_event()
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.intake.pause();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.intake.pause();
    }
}

impl std::fmt::Debug for ListWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ListWatch({})", self.description())
    }
}
