//! Stores that panic, runtimes that end, threads that are not there.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_harms_nobody_for_long() {
    struct Panicking(Arc<Store>, AtomicBool);
    impl KnownObjects<Object> for Panicking {
        fn list_keys(&self) -> Vec<ObjectKey> {
            assert!(!self.1.load(Ordering::Relaxed), "a store that panics");
            self.0.list_keys()
        }

        fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
            self.0.get_by_key(key)
        }
    }
    let store = Store::new();
    let panicking = Arc::new(Panicking(store.clone(), AtomicBool::new(true)));
    let packer = Packer::new(MAX_RAW_BYTES, Some(panicking.clone()));
    admit(&packer, &store, &PODS, 0..700).await;
    packer.list_ended();
    drained(&packer).await;
    sleep(Duration::from_secs(120)).await;
    panicking.1.store(false, Ordering::Relaxed);
    let later = Store::new();
    admit(&packer, &later, &PODS, 700..1500).await;
    drained(&packer).await;
    assert!(later.objects().values().all(|pod| pod.base().is_some()));
}

#[test]
fn a_packer_outlives_its_runtime() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    for round in 0..2 {
        store.objects().clear();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let numbers = round * 1400..round * 1400 + 1400;
        runtime.block_on(async { admit(&packer, &store, &PODS, numbers).await });
        // In the middle of everything.
        drop(runtime);
    }
    let raw: usize = store.objects().values().filter_map(Object::raw).map(|body| body.len()).sum();
    assert!(raw <= MAX_RAW_BYTES, "{raw} bytes are raw");
    assert_eq!(packer.0.room.available_permits(), packer.0.room_bytes);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_behind_with_the_last_clone() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let clone = packer.clone();
    admit(&clone, &store, &PODS, 0..700).await;
    packer.list_ended();
    drop(packer);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(tasks(), before + 1);
    admit(&clone, &store, &PODS, 700..800).await;
    drop(clone);
    until("no task is left", || tasks() == before).await;
    // The store alone holds itself.
    assert_eq!(Arc::strong_count(&store), 1);
    assert!(store.objects().values().all(|pod| pod.base().is_some()));
}

/// Whoever drops a stream flushes, and may do so when the runtime is gone.
#[test]
fn outside_of_a_runtime_nothing_is_packed_and_nothing_breaks() {
    let packer = Packer::new(MAX_RAW_BYTES, None);
    let read = bytes::Bytes::from(with_payload("a", 1, &noise(1, 100)).json().expect("raw").to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let object = Object::from_json(read.clone()).expect("an object");
    runtime.block_on(packer.admit(&object, None));
    packer.flush();
    assert!(object.raw().is_some());
    drop(object);
    assert!(read.is_unique(), "it is not kept where it was read");
    runtime.block_on(async { packer.list_ended() });
    drop(runtime);
    let object = with_payload("b", 1, "");
    let another = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    another.block_on(packer.admit(&object, None));
    packer.flush();
}

/// All threads for what blocks are taken, by somebody who waits for the objects.
#[test]
fn objects_are_packed_though_no_thread_for_what_blocks_is_free() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (tell, told) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || told.recv());
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let all = runtime.block_on(async {
        timeout(Duration::from_secs(20), async {
            for number in 0..1500 {
                let pod = object(PODS.pod(number));
                packer.admit(&pod, None).await;
                store.put(pod);
            }
        })
        .await
    });
    let count = store.objects().len();
    drop(tell);
    assert!(all.is_ok(), "reading stopped after {count} objects");
}
