//! What comes out is what went in.

use super::*;

type Expected = (Object, Arc<str>);

/// Objects of all sorts come and go, dictionaries too, while others read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_body_is_exact_at_every_moment() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let store = Store::new();
    let expected: Arc<Mutex<HashMap<ObjectKey, Expected>>> = Arc::default();
    let packer = Packer::new(300_000, known(&store));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let (expected, done) = (expected.clone(), done.clone());
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ reader);
                while !done.load(Ordering::Relaxed) {
                    let all: Vec<Expected> = expected.lock().expect("not poisoned").values().cloned().collect();
                    for _ in 0..200.min(all.len()) {
                        let (object, json) = &all[random.usize(..all.len())];
                        assert_eq!(object.json().expect("a body"), **json, "seed {seed}");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    admit_unlike_pods(&packer, &store, 200).await;
    let mut were_like_another = 0;
    for step in 0..3500 {
        let rollout = if step / 1200 % 2 == 0 { &PODS } else { &OTHERS };
        let json = if random.u8(..) == 0 { hostile(&mut random, step) } else { rollout.pod(random.usize(..800)) };
        // Its states are not the same: some differ in little, some in more.
        let noise = noise(step as u64, random.usize(..300));
        let json = json.replacen("\"phase\":\"Running\"", &format!("\"phase\":\"{noise}\""), 1);
        let object = Object::from_json(json.clone()).expect("an object");
        let last = store.get_by_key(object.key());
        were_like_another += usize::from(last.as_ref().and_then(Object::base).is_some_and(|base| base.is_shared));
        packer.admit(&object, last.as_ref()).await;
        // At some times many come together.
        if step % 600 < 300 || random.u8(..) == 0 {
            packer.flush();
        }
        assert_eq!(object.json().expect("a body"), json, "seed {seed}");
        store.put(object.clone());
        {
            let mut expected = expected.lock().expect("not poisoned");
            expected.insert(object.key().clone(), (object, json.into()));
            if random.u8(..) < 8 {
                let gone = expected.keys().next().cloned().expect("an object");
                expected.remove(&gone);
                store.objects().remove(&gone);
            }
        }
        match step {
            800 => packer.list_ended(),
            // The first dictionary is not one for pods: that of the whole store is better for certain.
            1800 => until("a second generation", || packer.status().generation >= 2).await,
            _ => {}
        }
        assert!(packer.status().dictionaries <= 2, "seed {seed}");
    }
    drained(&packer).await;
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("exact bytes");
    }
    for (object, json) in expected.lock().expect("not poisoned").values() {
        assert_eq!(object.json().expect("a body"), **json, "seed {seed}");
    }
    assert!(were_like_another > 0, "seed {seed}");
}

/// An object that nobody would write.
fn hostile(random: &mut fastrand::Rng, number: usize) -> String {
    let escaped = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = |length: usize| -> String { (0..length).map(|_| random.char(..)).collect() };
    let (short, long) = (text(20), text(3000));
    let pairs: Vec<String> =
        (0..number % 300).map(|n| format!("{}:{}", escaped(&format!("{short}{n}")), escaped(&short))).collect();
    let body = match number % 4 {
        0 => String::new(),
        1 => format!(",\"data\":{{{}:{}}}", escaped(&short), escaped(&long)),
        2 => format!(",\"data\":\"{}\"", "x".repeat(1_000_000)),
        _ => format!(",\"spec\":[[[[[[1e400,-0,{}]]]]]], \"\\u0041\" : null", escaped(&long)),
    };
    format!(
        "{{\"metadata\":{{\"labels\":{{{}}},\"name\":{},\"resourceVersion\":\"{number}\"}}{body}}}",
        pairs.join(","),
        escaped(&format!("o{short}"))
    )
}
