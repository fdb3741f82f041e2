//! Objects that come one by one wait for others, and for how long.

use super::*;

const WAIT: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn an_object_that_comes_after_a_rest_waits_for_others_but_not_for_long() {
    let (store, packer) = settled(700).await;
    let pod = object(PODS.pod(700));
    packer.admit(&pod, None).await;
    packer.flush();
    store.put(pod.clone());
    sleep(WAIT - Duration::from_millis(2)).await;
    assert!(pod.raw().is_some() && packer.status().busy, "it waits");
    let next = object(PODS.pod(701));
    packer.admit(&next, None).await;
    packer.flush();
    store.put(next.clone());
    sleep(Duration::from_millis(4)).await;
    assert!(pod.raw().is_none() && next.raw().is_none(), "both are packed");
    until("all is done", || !packer.status().busy).await;
}

#[tokio::test(start_paused = true)]
async fn objects_do_not_wait_for_others_where_many_bytes_wait_or_a_list_has_ended() {
    let (store, packer) = settled(700).await;
    let large = with_payload("large", 1, &noise(1, 600_000));
    packer.admit(&large, None).await;
    packer.flush();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(packer.0.room.available_permits(), packer.0.room_bytes, "it has had its turn");

    sleep(Duration::from_secs(1)).await;
    let pod = object(PODS.pod(700));
    packer.admit(&pod, None).await;
    store.put(pod.clone());
    packer.list_ended();
    sleep(Duration::from_millis(1)).await;
    assert!(pod.raw().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_does_not_wait_for_others() {
    let packer = Packer::new(100_000, None);
    let small = with_payload("small", 1, &noise(1, packer.0.room_bytes / 5));
    let large = with_payload("large", 1, &noise(2, packer.0.room_bytes - 1000));
    packer.admit(&with_payload("first", 1, ""), None).await;
    drained(&packer).await;
    sleep(Duration::from_secs(1)).await;
    packer.admit(&small, None).await;
    packer.flush();
    sleep(Duration::from_millis(1)).await;
    assert!(packer.0.room.available_permits() < packer.0.room_bytes, "it waits");
    timeout(Duration::from_millis(2), packer.admit(&large, None)).await.expect("room is made at once");
    drained(&packer).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_others_is_packed_when_the_source_is_gone() {
    let (store, packer) = settled(700).await;
    let pod = object(PODS.pod(700));
    packer.admit(&pod, None).await;
    packer.flush();
    store.put(pod.clone());
    sleep(Duration::from_millis(1)).await;
    assert!(pod.raw().is_some(), "it waits");
    drop(packer);
    sleep(WAIT).await;
    assert!(pod.raw().is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_that_change_twice_while_they_wait_are_kept_as_what_differs_all_the_same() {
    let (store, packer) = settled(1200).await;
    let is_like_another = |pod: &Object| pod.base().is_some_and(|base| base.is_shared);
    let like: Vec<Object> = store.objects().values().filter(|pod| is_like_another(pod)).take(100).cloned().collect();
    assert_eq!(like.len(), 100);
    for pod in like {
        let json = String::from_utf8(pod.json().expect("a body").to_vec()).expect("text");
        for phase in ["Pending", "Failed"] {
            let next = object(json.replacen("\"Running\"", &format!("\"{phase}\""), 1));
            packer.admit(&next, store.get_by_key(next.key()).as_ref()).await;
            packer.flush();
            store.put(next);
            sleep(Duration::from_millis(3)).await;
        }
        drained(&packer).await;
        sleep(Duration::from_secs(1)).await;
        assert!(store.get_by_key(pod.key()).is_some_and(|pod| is_like_another(&pod)), "{}", pod.key());
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_are_at_hand_after_a_rest_wait_for_no_others() {
    let (store, packer) = settled(700).await;
    admit(&packer, &store, &PODS, 700..705).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(packer.0.room.available_permits(), packer.0.room_bytes, "all have had their turn");
    assert!(store.objects().values().all(|pod| pod.raw().is_none()));
}
