//! Objects that are much like another.

use super::*;

#[tokio::test(start_paused = true)]
async fn objects_that_are_much_alike_are_kept_as_what_differs_also_when_the_dictionary_changes() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let numbers = PODS.sorted(4000);
    admit_unlike_pods(&packer, &store, 620).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1, "what is not for pods");
    admit(&packer, &store, &PODS, numbers.iter().copied()).await;
    packer.list_ended();
    drained(&packer).await;
    let shares = || {
        let objects = store.objects();
        let bases: Vec<_> = objects.values().filter_map(Object::base).filter(|base| base.is_shared).collect();
        let different: HashSet<_> = bases.iter().map(|base| base.packed.address()).collect();
        (bases.len(), different.len())
    };
    let (spliced, bases) = shares();
    assert!(spliced > 2500 && bases < 450, "{spliced} {bases}");
    let old = packer.status();
    let mean = |store: &Store| store.objects().values().map(Object::size).sum::<usize>() / numbers.len();
    assert!(mean(&store) < 500, "{}", mean(&store));
    until("all is done", || !packer.status().busy).await;
    let status = packer.status();
    assert!(status.generation > old.generation && status.dictionaries == 1, "{status:?}");
    assert_eq!(store.generations(), 1);
    assert_eq!(shares(), (spliced, bases), "what they share is packed once");
    for number in numbers {
        let json = PODS.pod(number);
        let pod = store.get_by_key(object(json.clone()).key()).expect("kept");
        assert_eq!(pod.json().expect("whole"), json);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_is_like_another_is_kept_as_what_differs_from_that() {
    let (store, packer) = settled(1500).await;
    let is_like_another = |pod: &Object| pod.base().is_some_and(|base| base.is_shared);
    let like: Vec<Object> = store.objects().values().filter(|pod| is_like_another(pod)).cloned().collect();
    assert!(like.len() > 100, "{}", like.len());
    let (mut kept, mut grown) = (0, 0);
    for pod in &like {
        let json = String::from_utf8(pod.json().expect("whole").to_vec()).expect("text");
        let json = json.replacen("\"phase\":\"Running\"", "\"phase\":\"Failed\",\"reason\":\"Evicted\"", 1);
        let changed = object(json.clone());
        packer.admit(&changed, Some(pod)).await;
        packer.flush();
        store.put(changed.clone());
        drained(&packer).await;
        assert_eq!(changed.json().expect("whole"), json);
        // One that differed much differs too much now.
        if is_like_another(&changed) {
            kept += 1;
            grown += changed.size().saturating_sub(pod.size());
        }
    }
    assert!(kept * 10 > like.len() * 8, "{kept} of {}", like.len());
    // Not each of them: what became too different from its own base may still be like another one.
    assert!(grown < kept * 60, "{grown} bytes more in {kept}");
}

fn like(stem: usize, number: usize, version: usize, common: &str, own: &str) -> Object {
    object(format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"t{stem}x-{number}","namespace":"shop","uid":"{stem:08x}-{number:08x}","resourceVersion":"{version}"}},"data":{{"common":"{common}","own":"{own}"}}}}"#
    ))
}

/// Old pods change while new ones, of another template with the same name, come.
#[tokio::test(start_paused = true)]
async fn in_a_rollout_new_ones_are_like_each_other() {
    let (store, packer) = settled(1500).await;
    let (old, new) = (noise(1, 3000), noise(2, 3000));
    let mut fresh = Vec::new();
    for number in 0..100 {
        let object = like(1, number, 1, &old, "");
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    }
    drained(&packer).await;
    for number in 0..100 {
        let last = store.get_by_key(&ObjectKey::namespaced("shop", format!("t1x-{number}"))).expect("kept");
        let changed = like(1, number, 2, &old, "deleting");
        packer.admit(&changed, Some(&last)).await;
        store.put(changed);
        let object = like(1, number + 1000, 1, &new, "");
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object.clone());
        fresh.push(object);
    }
    drained(&packer).await;
    let shared = fresh.iter().filter(|object| object.base().is_some_and(|base| base.is_shared)).count();
    assert!(shared > 90, "{shared} of 100");
}
