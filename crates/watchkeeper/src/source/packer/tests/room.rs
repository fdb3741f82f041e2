//! How much waits at most.

use super::*;

/// Raw bodies among the objects that are held, whatever holds them.
#[tokio::test(start_paused = true)]
async fn raw_bodies_keep_within_their_bound_at_every_step() {
    for bound in [0, 1, 2, 1000, 64 << 10, 200_000, MAX_RAW_BYTES] {
        for list_ends in [false, true] {
            let packer = Packer::new(bound, None);
            let mut unpacked: Vec<Object> = Vec::new();
            let mut held = Vec::new();
            let mut largest = 0;
            for number in 0..if bound < MIB { 100 } else { 700 } {
                let json = PODS.pod(number);
                largest = largest.max(json.len());
                let pod = object(json);
                packer.admit(&pod, None).await;
                packer.flush();
                unpacked.push(pod.clone());
                held.push(pod);
                if list_ends && number == 50 {
                    packer.list_ended();
                }
                unpacked.retain(|pod| pod.raw().is_some());
                let raw: usize = unpacked.iter().map(Object::size).sum();
                assert!(raw <= bound.max(largest), "{raw} bytes are raw at a bound of {bound}, object {number}");
            }
            drained(&packer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bounds_without_measure_bound_nothing() {
    for bound in [usize::MAX, u32::MAX as usize + 1] {
        let store = Store::new();
        let packer = Packer::new(bound, known(&store));
        admit(&packer, &store, &PODS, 0..700).await;
        drained(&packer).await;
        assert_eq!(packer.status().packed, 700);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_larger_than_all_the_room_pass_one_by_one() {
    let packer = Packer::new(100_000, None);
    let large: Vec<Object> = (0..8).map(|n| with_payload(&format!("large-{n}"), n, &"x".repeat(300_000))).collect();
    let small: Vec<Object> = (0..200).map(|n| with_payload(&format!("small-{n}"), n, &"y".repeat(600))).collect();
    let admissions = large.iter().chain(&small).map(|object| packer.admit(object, None));
    timeout(Duration::from_secs(60), futures::future::join_all(admissions)).await.expect("all pass");
    drained(&packer).await;
    assert!(large.iter().all(|object| object.base().is_some()));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_again_before_its_turn_is_packed_once() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, None);
    admit(&packer, &store, &PODS, 0..700).await;
    drained(&packer).await;
    let before = packer.status();
    for version in 0..10 {
        let object = with_payload("busy", version, &"x".repeat(1000));
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    }
    drained(&packer).await;
    let after = packer.status();
    assert_eq!((after.packed - before.packed, after.skipped - before.skipped), (1, 9));
}

#[tokio::test(start_paused = true)]
async fn an_admission_that_is_given_up_leaks_no_room() {
    let packer = Packer::new(64 << 10, None);
    let objects: Vec<Object> =
        (0..200).map(|n| with_payload(&format!("o-{n}"), n, &noise(n as u64, 200 * n))).collect();
    for object in &objects {
        let given_up = timeout(Duration::ZERO, packer.admit(object, None)).await.is_err();
        if !given_up {
            continue;
        }
        timeout(Duration::from_secs(60), packer.admit(object, None)).await.expect("there will be room");
    }
    drained(&packer).await;
}
