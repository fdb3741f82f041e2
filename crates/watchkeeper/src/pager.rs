//! How does one read a list that is too long for one answer?
//!
//! A [`Pager`] asks for pages of 500 objects, and reads ahead: while the objects of one page are being used, the next
//! pages are asked for, at most ten of them and at most 8 MiB of objects. Each page is read as it arrives, and where its
//! metadata comes first the next page is asked for while it is still being read.
//!
//! ```
//! use watchkeeper::{ListOptions, Object, Pager, Scripted, ScriptedList};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), watchkeeper::Error> {
//! # let pod = |name: &str| Object::from_json(format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"1"}}}}"#));
//! let source = Scripted::new()
//!     .answer_list(ScriptedList::new("9", [pod("a")?, pod("b")?]).continues("token"))
//!     .answer_list(ScriptedList::new("9", [pod("c")?]));
//!
//! let list = Pager::over(source).page_size(2).list(ListOptions::default()).await?;
//! assert_eq!(list.items.len(), 3);
//! assert!(list.paginated);
//! # Ok(()) }
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::defaults::{LIST_IDLE_TIMEOUT, PAGE_BUFFER, PAGE_BUFFER_BYTES, PAGE_SIZE};
use crate::source::{BadObject, ListMetadata, ListOptions, ListPart, ListerWatcher, Listing};
use crate::{Error, ErrorKind, Object, ResourceVersion};

type Fetch = dyn Fn(ListOptions) -> BoxFuture<'static, Result<Listing, Error>> + Send + Sync;

/// Reads long lists page by page: client-go's `ListPager`.
#[derive(Clone)]
pub struct Pager {
    fetch: Arc<Fetch>,
    page_size: u32,
    page_buffer: usize,
    buffer_bytes: usize,
    full_list_if_expired: bool,
    idle_timeout: Duration,
}

/// A list that was read to its end.
#[derive(Debug, Clone, Default)]
pub struct PagedList {
    /// The objects.
    pub items: Vec<Object>,
    /// Objects that are there, and cannot be used.
    pub bad: Vec<BadObject>,
    /// The version of the state that the list shows: that of its first page.
    pub resource_version: ResourceVersion,
    /// There was more than one page.
    pub paginated: bool,
}

impl Pager {
    /// A pager over anything that answers with a page.
    pub fn new<F, Answer>(fetch: F) -> Self
    where
        F: Fn(ListOptions) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Listing, Error>> + Send + 'static,
    {
        Self {
            fetch: Arc::new(move |options| Box::pin(fetch(options))),
            page_size: PAGE_SIZE,
            page_buffer: PAGE_BUFFER,
            buffer_bytes: PAGE_BUFFER_BYTES,
            full_list_if_expired: true,
            idle_timeout: LIST_IDLE_TIMEOUT,
        }
    }

    /// A pager over a source's lists.
    pub fn over(source: impl ListerWatcher + 'static) -> Self {
        let source = Arc::new(source);
        Self::new(move |options| {
            let source = source.clone();
            async move { source.list(options).await }
        })
    }

    /// Objects in a page, where the options do not say; 0 asks for all at once.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = objects;
        self
    }

    /// How many pages may be asked for before the objects of the first have been used; at least one.
    pub fn page_buffer(mut self, pages: usize) -> Self {
        self.page_buffer = pages.max(1);
        self
    }

    /// How many bytes of objects may wait to be used. A larger object is let through alone.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        self
    }

    /// Whether [`list`](Self::list) asks for all at once when the server has forgotten a later page; true by default.
    pub fn full_list_if_expired(mut self, full_list: bool) -> Self {
        self.full_list_if_expired = full_list;
        self
    }

    /// How long the source may be silent.
    pub fn idle_timeout(mut self, silence: Duration) -> Self {
        self.idle_timeout = silence;
        self
    }

    /// Reads the whole list.
    ///
    /// When the server has forgotten the state of the first page by the time that a later one is asked for, the whole
    /// list is asked for at once, at the version that was asked for first.
    pub async fn list(&self, options: ListOptions) -> Result<PagedList, Error> {
        self.list_observed(options, |_| {}).await
    }

    /// As [`list`](Self::list), and shows each part as it comes.
    pub(crate) async fn list_observed(
        &self,
        options: ListOptions,
        mut observe: impl FnMut(&ListPart),
    ) -> Result<PagedList, Error> {
        let mut pages = self.pages(options.clone());
        match pages.collect(&mut observe).await {
            // The first page of all has no earlier one that could have been forgotten.
            Err(error)
                if error.is_expired()
                    && (pages.paginated || options.continue_token.is_some())
                    && self.full_list_if_expired =>
            {
                let options = ListOptions { limit: None, continue_token: None, ..options };
                let mut pages = Self { page_size: 0, ..self.clone() }.pages(options);
                let mut list = pages.collect(&mut observe).await?;
                list.paginated = true;
                Ok(list)
            }
            list => list,
        }
    }

    /// Calls `each` with every object that can be used, while later pages are on their way. An error of `each` ends it
    /// at once. There is no second try: objects that `each` has seen cannot be taken back.
    pub async fn each_item<E: From<Error>>(
        &self,
        options: ListOptions,
        mut each: impl AsyncFnMut(Object) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pages = self.pages(options);
        while let Some(part) = pages.next().await? {
            if let ListPart::Item(object) = part {
                each(object).await?;
            }
        }
        Ok(())
    }

    /// Calls `each` with every part, while later pages are on their way. As with [`each_item`](Self::each_item), there is
    /// no second try.
    pub(crate) async fn each_part(&self, options: ListOptions, mut each: impl FnMut(ListPart)) -> Result<(), Error> {
        let mut pages = self.pages(options);
        while let Some(part) = pages.next().await? {
            each(part);
        }
        Ok(())
    }

    /// Starts to read.
    fn pages(&self, mut options: ListOptions) -> Pages {
        if options.limit.is_none() && self.page_size > 0 {
            options.limit = Some(self.page_size);
        }
        let (sender, parts) = mpsc::unbounded_channel();
        let reader = Reader {
            fetch: self.fetch.clone(),
            idle_timeout: self.idle_timeout,
            pages: Arc::new(Semaphore::new(self.page_buffer)),
            bytes: Arc::new(Semaphore::new(self.buffer_bytes)),
            buffer_bytes: self.buffer_bytes,
            sender,
        };
        Pages { parts, task: Some(AbortOnDropHandle::new(tokio::spawn(reader.run(options)))), paginated: false }
    }
}

/// A list that is being read in the background. Dropping it stops the reading.
struct Pages {
    parts: mpsc::UnboundedReceiver<Buffered>,
    task: Option<AbortOnDropHandle<Result<(), Error>>>,
    /// A page has said that there is another.
    paginated: bool,
}

/// What the reader has read ahead. The permits are given back when it is used.
enum Buffered {
    Part(ListPart, OwnedSemaphorePermit),
    EndOfPage(OwnedSemaphorePermit),
}

impl Pages {
    async fn next(&mut self) -> Result<Option<ListPart>, Error> {
        while let Some(buffered) = self.parts.recv().await {
            match buffered {
                Buffered::Part(part, _used) => {
                    if let ListPart::Metadata(metadata) = &part {
                        self.paginated |= metadata.continue_token.is_some();
                    }
                    return Ok(Some(part));
                }
                Buffered::EndOfPage(_used) => {}
            }
        }
        let Some(task) = self.task.take() else { return Ok(None) };
        match task.await {
            Ok(result) => result.map(|()| None),
            Err(error) => match error.try_into_panic() {
                // What a source does wrong comes out where the list was asked for.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::new(ErrorKind::Disconnected, "the runtime is shutting down")),
            },
        }
    }

    async fn collect(&mut self, observe: &mut impl FnMut(&ListPart)) -> Result<PagedList, Error> {
        let mut list = PagedList::default();
        let mut version = None;
        while let Some(part) = self.next().await? {
            observe(&part);
            match part {
                ListPart::Item(object) => list.items.push(object),
                ListPart::Bad(object) => list.bad.push(object),
                ListPart::Metadata(metadata) => drop(version.get_or_insert(metadata.resource_version)),
                ListPart::Progress => {}
            }
        }
        list.resource_version = version.unwrap_or_default();
        list.paginated = self.paginated;
        Ok(list)
    }
}

/// The task that asks for pages and reads them.
struct Reader {
    fetch: Arc<Fetch>,
    idle_timeout: Duration,
    pages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    buffer_bytes: usize,
    sender: mpsc::UnboundedSender<Buffered>,
}

type Page = Result<(Listing, OwnedSemaphorePermit), Error>;

/// The page after the one that is being read.
enum Next {
    None,
    Asked(BoxFuture<'static, Page>),
    Answered(Page),
}

impl Next {
    /// Waits for `this`, and lets the next page be asked for meanwhile: the clock on its answer is running.
    async fn during<T>(&mut self, this: impl Future<Output = T>) -> T {
        tokio::pin!(this);
        while let Self::Asked(page) = self {
            tokio::select! {
                biased;
                done = &mut this => return done,
                page = page => *self = Self::Answered(page),
            }
        }
        this.await
    }
}

impl Reader {
    async fn run(self, mut options: ListOptions) -> Result<(), Error> {
        let mut next = Next::Asked(self.ask(options.clone()));
        loop {
            let (listing, permit) = match next {
                Next::Asked(page) => page.await?,
                Next::Answered(page) => page?,
                Next::None => return Ok(()),
            };
            next = self.read(listing, &mut options).await?;
            // Nobody reads any more only if the list was dropped, and this task with it.
            let _ = self.sender.send(Buffered::EndOfPage(permit));
        }
    }

    /// Asks for a page, when there is room for one.
    fn ask(&self, options: ListOptions) -> BoxFuture<'static, Page> {
        let (fetch, pages, idle) = (self.fetch.clone(), self.pages.clone(), self.idle_timeout);
        Box::pin(async move {
            let permit = pages.acquire_owned().await.map_err(|_| closed())?;
            let listing = timeout(idle, fetch(options)).await.map_err(|_| silent(idle))??;
            Ok((listing, permit))
        })
    }

    /// Reads a page, and asks for the next as soon as it is known that there is one.
    async fn read(&self, mut listing: Listing, options: &mut ListOptions) -> Result<Next, Error> {
        let mut next = Next::None;
        let this = options.continue_token.clone();
        loop {
            let part = next.during(timeout(self.idle_timeout, listing.next())).await;
            let Some(part) = part.map_err(|_| silent(self.idle_timeout))?? else { return Ok(next) };
            if let ListPart::Metadata(ListMetadata { continue_token: Some(token), .. }) = &part {
                if this.as_ref() == Some(token) {
                    // A cache in between that does not look at the query, say. It would go on for ever.
                    return Err(Error::new(ErrorKind::Malformed, "a page of the list is its own next page"));
                }
                // A server refuses a version together with a continue token, which has one of its own.
                options.continue_token = Some(token.clone());
                options.resource_version = ResourceVersion::unset();
                options.resource_version_match = None;
                next = Next::Asked(self.ask(options.clone()));
            }
            let size = match &part {
                ListPart::Item(object) => object.size().min(self.buffer_bytes),
                // Small, but there may be any number of them.
                _ => size_of::<Buffered>().min(self.buffer_bytes),
            };
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            let permit = next.during(self.bytes.clone().acquire_many_owned(size)).await.map_err(|_| closed())?;
            let _ = self.sender.send(Buffered::Part(part, permit));
        }
    }
}

fn silent(time: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format_args!("the server sent nothing for {time:?}"))
}

fn closed() -> Error {
    Error::new(ErrorKind::Disconnected, "the list is no longer read")
}
