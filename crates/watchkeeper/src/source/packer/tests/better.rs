//! Better dictionaries: after a rollout, and of the whole store.

use super::*;

#[tokio::test(start_paused = true)]
async fn after_a_rollout_there_is_a_new_dictionary_and_soon_nothing_of_the_old_one() {
    let (store, packer) = settled(700).await;
    let generation = packer.status().generation;
    let mut expected = HashMap::new();
    for number in 0..1200 {
        let json = unlike_others(number, OTHERS.pod(number));
        let pod = object(json.clone());
        expected.insert(pod.key().clone(), json);
        packer.admit(&pod, None).await;
        packer.flush();
        store.put(pod);
        if number % 100 == 0 {
            assert!(store.generations() <= 2);
        }
    }
    until("a new generation", || packer.status().generation > generation).await;
    until("the old one is gone", || packer.status().dictionaries == 1).await;
    assert_eq!(store.generations(), 1);
    assert!(packer.status().repacked > 0);
    for (key, json) in expected {
        assert_eq!(store.get_by_key(&key).expect("kept").json().expect("whole"), json);
    }
    // And that is that.
    let generation = packer.status().generation;
    for number in 1200..2300 {
        let pod = object(unlike_others(number, OTHERS.pod(number)));
        packer.admit(&pod, None).await;
        packer.flush();
        store.put(pod);
    }
    drained(&packer).await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(packer.status().generation, generation);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_to_look_at_old_dictionaries_live_until_their_objects_are_gone_and_no_third_is_made() {
    let (old, new) = (Store::new(), Store::new());
    let packer = Packer::new(MAX_RAW_BYTES, None);
    admit(&packer, &old, &PODS, 0..700).await;
    packer.list_ended();
    for round in 1..4 {
        let common = noise(round, 3000);
        for number in 0..1100 {
            let object = with_payload(&format!("o{number}z"), number, &common);
            packer.admit(&object, None).await;
            packer.flush();
            new.put(object);
        }
        drained(&packer).await;
        sleep(Duration::from_secs(120)).await;
        assert!(packer.status().generation <= 2, "{:?}", packer.status());
    }
    assert_eq!((packer.status().generation, packer.status().dictionaries), (2, 2));
    drop((old, new));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(packer.status().dictionaries, 1);
}

/// What no dictionary makes smaller must not hide what another one would.
#[tokio::test(start_paused = true)]
async fn after_tries_in_vain_a_rollout_is_noticed_all_the_same() {
    let (store, packer) = settled(1500).await;
    let before = packer.status().generation;
    let admit = async |number: usize, payload: &str| {
        let object = with_payload(&format!("o{number}z"), number, payload);
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
        drained(&packer).await;
    };
    for number in 0..150 {
        admit(number, &noise(number as u64 + 100, 20_000)).await;
    }
    until("the try is over", || !packer.status().busy).await;
    assert_eq!(packer.status().generation, before, "nothing is better");
    let template = noise(7, 3000);
    for number in 1000..1500 {
        admit(number, &template).await;
    }
    until("a dictionary with the template", || packer.status().generation > before).await;
}

/// Pods of which a few are others: too few for drift, enough for a better dictionary.
async fn admit_mixed(packer: &Packer, store: &Store, numbers: std::ops::Range<usize>) {
    for number in numbers {
        admit(packer, store, if number % 8 == 0 { &OTHERS } else { &PODS }, [number]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_however_often_the_first_list_was_begun() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    // Twice the connection breaks.
    for _ in 0..2 {
        let broken_off = Store::new();
        admit_unlike_pods(&packer, &broken_off, 620).await;
        drained(&packer).await;
    }
    let list = Store::new();
    admit_mixed(&packer, &list, 0..1000).await;
    packer.list_ended();
    *store.objects() = std::mem::take(&mut *list.objects());
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
    until("all is packed against it", || packer.status().dictionaries == 1).await;
    assert_eq!(store.generations(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_while_objects_change_all_the_time() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit_unlike_pods(&packer, &store, 620).await;
    admit_mixed(&packer, &store, 0..800).await;
    packer.list_ended();
    for _ in 0..6 {
        admit(&packer, &store, &PODS, 0..300).await;
        sleep(Duration::from_millis(150)).await;
    }
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
}

/// As with several namespaces, whose lists come to their ends one after the other.
#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_though_the_first_list_was_too_small_for_one() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit_unlike_pods(&packer, &store, 20).await;
    packer.list_ended();
    admit_unlike_pods(&packer, &store, 300).await;
    admit_mixed(&packer, &store, 0..1100).await;
    packer.list_ended();
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
}

/// Of several namespaces, one is empty, and the list of the next is slow.
#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_however_long_the_list_takes_to_get_there() {
    let (on_its_way, store) = (Store::new(), Store::new());
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    packer.list_ended();
    admit_unlike_pods(&packer, &on_its_way, 620).await;
    admit_mixed(&packer, &on_its_way, 0..1500).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1);
    sleep(Duration::from_secs(600)).await;
    assert_eq!((packer.status().generation, packer.status().busy), (1, false));
    on_its_way.objects().drain().for_each(|(_, pod)| store.put(pod));
    until("all of it was looked at", || packer.status().generation == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_while_the_first_list_is_on_its_way_to_the_store_is_noticed() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let on_its_way = Store::new();
    admit(&packer, &on_its_way, &PODS, 0..800).await;
    packer.list_ended();
    admit(&packer, &on_its_way, &OTHERS, 0..1500).await;
    drained(&packer).await;
    sleep(Duration::from_millis(500)).await;
    *store.objects() = std::mem::take(&mut *on_its_way.objects());
    until("a new dictionary", || packer.status().generation >= 2).await;
    until("the old one is gone", || packer.status().dictionaries == 1).await;
}

/// In the first list there is one object that is like no other, and large.
#[tokio::test(start_paused = true)]
async fn a_rollout_is_noticed_though_one_object_packs_badly() {
    for outlier in [0, 300_000] {
        let store = Store::new();
        let packer = Packer::new(MAX_RAW_BYTES, known(&store));
        let admit = async |object: Object| {
            packer.admit(&object, None).await;
            packer.flush();
            store.put(object);
        };
        let [template, another] = [noise(5, 3000), noise(7, 3000)];
        for number in 0..1500 {
            if number == 5 {
                admit(with_payload("outlier", 1, &noise(99, outlier))).await;
            }
            admit(with_payload(&format!("web-{number}"), number, &template)).await;
        }
        packer.list_ended();
        drained(&packer).await;
        until("no plans", || !packer.status().busy).await;
        let before = packer.status().generation;
        for number in 0..3000 {
            admit(with_payload(&format!("o{number}z"), number, &another)).await;
        }
        until("a dictionary of the new template", || packer.status().generation > before).await;
    }
}
