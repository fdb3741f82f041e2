//! What reading takes in memory. A binary of its own, because it measures the whole process.

use bytes::{BufMut as _, Bytes, BytesMut};
use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use peak_alloc::PeakAlloc;
use watchkeeper::{Error, ListOptions, ListPart, ListWatch, ListerWatcher as _, Pager, WatchEvent};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
const PIECE: usize = 64 << 10;
/// What may come and go meanwhile that is none of the objects': the runtime of the test that waits for its turn, what
/// the harness prints, what a thread sets up when it first reads. Far less than the pieces that must not be kept.
const ASIDE: usize = 256 << 10;

/// One test at a time: all of them measure the same heap.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// How far the heap rises above where it is now.
struct Rise(usize);

impl Rise {
    fn from_here() -> Self {
        HEAP.reset_peak_usage();
        Self(HEAP.current_usage())
    }

    fn peak(&self) -> usize {
        HEAP.peak_usage() - self.0
    }

    fn now(&self) -> usize {
        HEAP.current_usage().saturating_sub(self.0)
    }
}

/// A pod of a real cluster, in three parts: its name and its uid belong in between.
struct Template([String; 3]);

impl Template {
    fn new() -> Self {
        let list = include_str!("data/pods.json");
        let start = list.find("\"items\":[").expect("items") + "\"items\":[".len();
        let length = list[start..].find("},{\"metadata\"").expect("a second item") + 1;
        let (before, rest) = list[start..start + length].split_once("\"name\":\"").expect("a name");
        let (_, rest) = rest.split_once('"').expect("its end");
        let (between, rest) = rest.split_once("\"uid\":\"").expect("a uid");
        let (_, behind) = rest.split_once('"').expect("its end");
        Self([before.to_owned() + "\"name\":\"", between.to_owned() + "\"uid\":\"", behind.to_owned()])
    }

    fn write(&self, number: usize, out: &mut BytesMut) {
        let [before, between, behind] = &self.0;
        out.put_slice(before.as_bytes());
        out.put_slice(format!("pod-{number}\"").as_bytes());
        out.put_slice(between.as_bytes());
        out.put_slice(format!("{number:08}-0000-4000-8000-000000000000\"").as_bytes());
        out.put_slice(behind.as_bytes());
    }
}

/// The bytes of a list of about `size` bytes, made as they are asked for.
fn list(size: usize, metadata_last: bool) -> impl Iterator<Item = Bytes> {
    let metadata = "\"metadata\":{\"resourceVersion\":\"9\"}";
    let (start, end) = if metadata_last {
        ("{\"apiVersion\":\"v1\",\"items\":[".to_owned(), format!("],\"kind\":\"PodList\",{metadata}}}"))
    } else {
        (format!("{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",{metadata},\"items\":["), "]}".to_owned())
    };
    let template = Template::new();
    let mut buffer = BytesMut::from(start.as_bytes());
    let (mut written, mut number, mut ended) = (0, 0, false);
    std::iter::from_fn(move || {
        while buffer.len() < PIECE && !ended {
            if number > 0 {
                buffer.put_u8(b',');
            }
            template.write(number, &mut buffer);
            number += 1;
            ended = written + buffer.len() >= size;
            if ended {
                buffer.put_slice(end.as_bytes());
            }
        }
        let piece = Bytes::copy_from_slice(&buffer.split_to(buffer.len().min(PIECE)));
        written += piece.len();
        (!piece.is_empty()).then_some(piece)
    })
}

/// Pods from a server that answers with what `pieces` makes.
fn pods<I>(pieces: impl Fn() -> I + Clone + Send + 'static) -> ListWatch
where
    I: Iterator<Item = Bytes> + Send + 'static,
{
    let service = tower::service_fn(move |_: http::Request<kube_client::client::Body>| {
        let frames = futures::stream::iter(pieces().map(|piece| Ok::<_, std::io::Error>(Frame::data(piece))));
        async move { Ok::<_, std::convert::Infallible>(Response::new(StreamBody::new(frames))) }
    });
    ListWatch::of::<Pod>(Client::new(service, "default"))
}

/// Reads a list of `size` bytes and lets go of each object: how many there were, and how far the heap rose.
async fn read_and_drop(size: usize, metadata_last: bool) -> (usize, usize) {
    let pager = Pager::over(pods(move || list(size, metadata_last)));
    let rise = Rise::from_here();
    let mut count = 0;
    let end = pager.each_item(ListOptions::default(), async |_| {
        count += 1;
        Ok::<_, Error>(())
    });
    end.await.expect("a whole list");
    (count, rise.peak())
}

#[tokio::test]
async fn a_list_of_500_mb_takes_no_more_than_16_mib_if_its_objects_are_let_go() {
    let _alone = ALONE.lock().await;
    for metadata_last in [false, true] {
        let (count, peak) = read_and_drop(500_000_000, metadata_last).await;
        assert!(count > 60_000, "{count}");
        assert!(peak < 16 * MIB, "the heap rose by {peak} bytes");
    }
}

#[tokio::test]
async fn keeping_one_object_does_not_keep_what_was_read_with_it() {
    let _alone = ALONE.lock().await;
    let source = pods(|| list(20 * MIB, false));
    let rise = Rise::from_here();
    let mut listing = source.list(ListOptions::default()).await.expect("an answer");
    let mut kept = Vec::new();
    let mut count = 0;
    while let Some(part) = listing.next().await.expect("a part") {
        if let ListPart::Item(object) = part {
            if count % 100 == 0 {
                kept.push(object);
            }
            count += 1;
        }
    }
    drop(listing);
    let bodies: usize = kept.iter().map(|object| object.json().expect("a body").len()).sum();
    assert!(kept.len() > 20 && rise.now() < bodies + bodies / 4 + ASIDE, "{} for {bodies}", rise.now());
}

#[tokio::test]
async fn keeping_one_event_does_not_keep_what_was_read_with_it() {
    let _alone = ALONE.lock().await;
    let event = |number: usize| {
        let mut line = BytesMut::from("{\"type\":\"ADDED\",\"object\":");
        Template::new().write(number, &mut line);
        line.put_slice(b"}\n");
        line
    };
    let source = pods(move || {
        (0..10).map(move |piece| (0..100).flat_map(|at| event(piece * 100 + at)).collect::<BytesMut>().freeze())
    });
    let rise = Rise::from_here();
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    let mut kept = Vec::new();
    let mut count = 0;
    while let Some(event) = stream.next().await.expect("an event") {
        if let WatchEvent::Added(object) = event {
            if count % 100 == 0 {
                kept.push(object);
            }
            count += 1;
        }
    }
    drop(stream);
    let bodies: usize = kept.iter().map(|object| object.json().expect("a body").len()).sum();
    assert!(kept.len() == 10 && rise.now() < bodies + bodies / 4 + ASIDE, "{} for {bodies}", rise.now());
}

#[tokio::test]
async fn an_object_without_end_takes_no_more_than_a_few_times_the_limit() {
    let _alone = ALONE.lock().await;
    let endless = |start: &'static str| {
        let piece = Bytes::from("x".repeat(PIECE));
        pods(move || std::iter::once(Bytes::from(start)).chain(std::iter::repeat(piece.clone())))
            .max_object_size(4 * MIB)
    };
    let list =
        endless("{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"x\":\"");
    let rise = Rise::from_here();
    let error = Pager::over(list).list(ListOptions::default()).await.expect_err("no list");
    assert!(error.to_string().contains("has no end") && rise.peak() < 16 * MIB, "{error}: {}", rise.peak());

    let watch =
        endless("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"x\":\"");
    let rise = Rise::from_here();
    let mut stream = watch.watch(ListOptions::default()).await.expect("an answer");
    let error = loop {
        match stream.next().await {
            Ok(Some(WatchEvent::Progress)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("has no end") && rise.peak() < 16 * MIB, "{error}: {}", rise.peak());
}
