//! What a cache of pods takes in memory. A binary of its own, because it measures the whole process.

mod corpus;

use bytes::Bytes;
use corpus::Pods;
use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use peak_alloc::PeakAlloc;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use watchkeeper::*;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

#[derive(Default)]
struct Map(Mutex<HashMap<ObjectKey, Object>>);
impl KnownObjects<Object> for Map {
    fn list_keys(&self) -> Vec<ObjectKey> {
        self.0.lock().unwrap().keys().cloned().collect()
    }
    fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
        self.0.lock().unwrap().get(key).cloned()
    }
}

fn list(pods: Arc<Pods>, order: Arc<Vec<usize>>) -> impl Iterator<Item = Bytes> {
    let count = order.len();
    (0..count).map(move |n| {
        let start = if n == 0 {
            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":["
        } else {
            ","
        };
        let end = if n == count - 1 { "]}" } else { "" };
        Bytes::from(format!("{start}{}{end}", pods.item(order[n])))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x() {
    let pods = Arc::new(Pods::new(1));
    let order = Arc::new(pods.sorted(10_000));
    let map = Arc::new(Map::default());
    let service = {
        let (pods, order) = (pods.clone(), order.clone());
        tower::service_fn(move |_: http::Request<kube_client::client::Body>| {
            let frames = futures::stream::iter(
                list(pods.clone(), order.clone()).map(|piece| Ok::<_, std::io::Error>(Frame::data(piece))),
            );
            async move { Ok::<_, std::convert::Infallible>(Response::new(StreamBody::new(frames))) }
        })
    };
    let source = ListWatch::of::<Pod>(Client::new(service, "default")).known_objects(map.clone());
    let base = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let t = std::time::Instant::now();
    let list = Pager::over(source.clone()).page_size(0).list(ListOptions::default()).await.unwrap();
    println!("listed {:?} peak {} now {}", t.elapsed(), HEAP.peak_usage() - base, HEAP.current_usage() - base);
    {
        let mut m = map.0.lock().unwrap();
        for o in list.items {
            m.insert(o.key().clone(), o);
        }
    }
    for i in 0..12 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        println!(
            "{i} now {} per pod {} {:?}",
            HEAP.current_usage() - base,
            (HEAP.current_usage() - base + source.packing().dictionary_bytes) / 10_000,
            source.packing()
        );
    }
    println!("peak {}", HEAP.peak_usage() - base);
}
