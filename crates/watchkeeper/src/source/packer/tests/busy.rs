//! When is there nothing left to be done?

use super::*;

#[tokio::test(start_paused = true)]
async fn a_packer_is_busy_while_something_waits_or_a_dictionary_is_looked_for() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    assert!(!packer.status().busy, "there is nothing");
    let pod = object(PODS.pod(0));
    packer.admit(&pod, None).await;
    assert!(packer.status().busy, "it waits");
    store.put(pod);
    admit(&packer, &store, &PODS, 1..700).await;
    packer.list_ended();
    drained(&packer).await;
    assert!(packer.status().busy, "a dictionary of all pods is to be tried");
    until("all is done", || !packer.status().busy).await;
    let done = packer.status();
    assert_eq!(done.dictionaries, 1);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(packer.status(), done);
}

#[test]
fn a_packer_whose_task_has_ended_with_its_runtime_is_not_busy() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime().block_on(async {
        admit(&packer, &store, &PODS, 0..700).await;
        packer.list_ended();
        until("a dictionary is to be tried", || packer.0.status.lock().expect("not poisoned").busy).await;
    });
    assert!(!packer.status().busy, "nobody is there who would do anything");
    runtime().block_on(async {
        admit(&packer, &store, &PODS, 700..710).await;
        sleep(Duration::from_secs(3600)).await;
        assert!(!packer.status().busy, "nor has the next one anything to do");
    });
}

#[tokio::test(start_paused = true)]
async fn a_packer_is_busy_that_has_not_yet_heard_that_a_list_has_ended() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..300).await;
    drained(&packer).await;
    assert!(!packer.status().busy, "they wait for more, and nothing is to be done: {:?}", packer.status());
    packer.list_ended();
    assert!(packer.status().busy, "a dictionary is to be made of them");
    until("all is done", || !packer.status().busy).await;
    assert_eq!(packer.status().packed, 300);
}

/// All that was listed has been deleted again.
#[tokio::test(start_paused = true)]
async fn a_packer_does_not_wait_for_ever_for_a_list_that_is_gone() {
    let (listed, store) = (Store::new(), Store::new());
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &listed, &PODS, 0..700).await;
    packer.list_ended();
    drained(&packer).await;
    drop(listed);
    assert!(packer.status().busy, "it may be on its way to the store");
    until("it is given up", || !packer.status().busy).await;
    let generation = packer.status().generation;
    for number in 0..700 {
        let pod = object(unlike_others(number, OTHERS.pod(number)));
        packer.admit(&pod, None).await;
        packer.flush();
        store.put(pod);
    }
    until("what comes later has a dictionary of its own", || packer.status().generation > generation).await;
}
