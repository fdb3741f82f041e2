//! What waits for the first dictionary, and what is packed without one.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_kind_of_less_than_a_mebibyte_stays_raw() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..100).await;
    packer.list_ended();
    for round in 0..12 {
        // Changes of the same few objects do not make it a large kind.
        for number in 0..100 {
            let pod = object(PODS.pod(number).replacen("\"uid\":\"", &format!("\"generation\":{round},\"uid\":\""), 1));
            packer.admit(&pod, None).await;
            packer.flush();
            store.put(pod);
        }
    }
    drained(&packer).await;
    sleep(Duration::from_secs(600)).await;
    assert!(store.objects().values().all(|pod| pod.raw().is_some()));
    assert_eq!((packer.status().generation, packer.status().packed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_first_dictionary_is_made_of_the_first_four_mebibytes_or_of_the_first_list() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let (mut bytes, mut number) = (0, 0);
    while bytes < 4 * MIB - 64 * 1024 {
        bytes += PODS.pod(number).len();
        admit(&packer, &store, &PODS, [number]).await;
        number += 1;
    }
    drained(&packer).await;
    assert_eq!(packer.status().generation, 0);
    admit(&packer, &store, &PODS, number..number + 20).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1);
    assert!(store.objects().values().all(|pod| pod.base().is_some()));

    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..200).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 0);
    packer.list_ended();
    until("a dictionary of what there is", || packer.status().generation == 1).await;
    assert!(store.objects().values().all(|pod| pod.base().is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_shrink_stays_raw() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let mut random = fastrand::Rng::with_seed(3);
    let wide: String = std::iter::repeat_with(|| random.char('\u{10000}'..'\u{e0000}')).take(20_000).collect();
    admit(&packer, &store, &PODS, 0..600).await;
    let stubborn = with_payload("stubborn", 1, &wide);
    packer.admit(&stubborn, None).await;
    packer.flush();
    drained(&packer).await;
    let saved = stubborn.base().map(|base| base.packed.size());
    assert!(saved.is_none_or(|size| size <= wide.len() * 9 / 10), "{saved:?}");
    assert!(stubborn.json().is_ok());
}

/// What differs from object to object cannot be learnt: it would be rated on what it has seen.
#[tokio::test(start_paused = true)]
async fn no_dictionary_is_made_for_objects_that_have_nothing_in_common() {
    let (store, packer) = settled(600).await;
    let generation = packer.status().generation;
    let payloads: Vec<String> = (0..60).map(|n| noise(n, 5000)).collect();
    for version in 0..100 {
        for (number, payload) in payloads.iter().enumerate() {
            let object = with_payload(&format!("hot-{number}"), version, payload);
            packer.admit(&object, None).await;
            packer.flush();
            store.put(object);
        }
        drained(&packer).await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(packer.status().generation, generation);
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_takes_a_sixteenth_of_the_bodies_at_most_however_often_they_change() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let [first, second] = [noise(1, 20_000), noise(2, 10_000)];
    let change = async |number: usize, version: usize, payload: &str| {
        let object = with_payload(&format!("o-{number}"), version, payload);
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    };
    for number in 0..60 {
        change(number, 0, &first).await;
    }
    packer.list_ended();
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1);
    store.objects().retain(|key, _| key.name() < "o-2");
    for version in 0..60 {
        for number in 0..20 {
            change(number, version, &second).await;
        }
        drained(&packer).await;
    }
    until("a dictionary for what there is now", || packer.status().generation == 2).await;
    until("all is packed against it", || packer.status().dictionaries == 1).await;
    let bodies: usize = store.objects().values().map(|object| object.json().expect("whole").len()).sum();
    let packed = store.get_by_key(&ObjectKey::namespaced("shop", "o-1")).expect("kept").base().expect("packed").packed;
    let dictionary = packed.dictionary().expect("its dictionary").memory_of_content();
    assert!(dictionary <= bodies / DICTIONARY_SHARE + DICTIONARY_OVERHEAD, "{dictionary} of {bodies}");
}

/// What zstd needs besides a dictionary's content to unpack.
const DICTIONARY_OVERHEAD: usize = 32 << 10;
