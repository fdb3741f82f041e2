//! A rain of writes and faults, with handlers that come and go, from many seeds. `WATCHKEEPER_SEEDS=1000` makes it heavier,
//! `WATCHKEEPER_SEED=17` repeats one.

use std::time::Duration;

use fastrand::Rng;
use k8s_openapi::api::core::v1::Pod;
use kube_client::core::DynamicObject;
use tokio::time::sleep;
use watchkeeper::{Buffer, HandlerHandle, HandlerOptions, InformerQueue, Keep, TableRow};
use watchkeeper_apiserver::{Fault, Match};

use crate::hearing::{Hearing, How};
use crate::support::{Bench, Mode, Sample, Setup};

#[tokio::test(start_paused = true)]
async fn after_any_rain_of_faults_cache_and_handlers_agree_with_the_server() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("WATCHKEEPER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WATCHKEEPER_SEEDS").unwrap_or(200),
    };
    let mut injected = 0;
    for seed in seeds {
        let guard = Say(seed);
        let mut rng = Rng::with_seed(seed);
        injected += match rng.u32(..3) {
            0 => rain::<Pod>(seed, rng).await,
            1 => rain::<DynamicObject>(seed, rng).await,
            _ => rain::<TableRow<Pod>>(seed, rng).await,
        };
        std::mem::forget(guard);
    }
    println!("{injected} faults were injected");
}

/// However a run fails, one knows which it was.
struct Say(u64);

impl Drop for Say {
    fn drop(&mut self) {
        eprintln!("to repeat it: WATCHKEEPER_SEED={}", self.0);
    }
}

fn setup<K: Sample>(seed: u64, rng: &mut Rng) -> Setup {
    let namespaces = [vec![], vec!["n1"], vec!["n1", "n2", "n3"]];
    Setup {
        mode: if rng.bool() { Mode::Streaming } else { Mode::Paged },
        seed,
        queue: if rng.u32(..3) == 0 { InformerQueue::Delta } else { InformerQueue::Atomic },
        keep: [Keep::Packed, Keep::Raw, Keep::decoded::<K>()][rng.usize(..3)].clone(),
        namespaces: namespaces[rng.usize(..3)].clone(),
    }
}

async fn rain<K: Sample>(seed: u64, mut rng: Rng) -> usize {
    let setup = setup::<K>(seed, &mut rng);
    let text = format!("WATCHKEEPER_SEED={seed} ({setup:?})");
    let bench = Bench::<K>::start_with(setup, |server| {
        server.faults().on(Match::any()).then(Fault::random(seed));
    })
    .await;
    let mut guests: Vec<(Hearing, HandlerHandle)> = Vec::new();
    for round in 0..24 {
        bench.write_some();
        match rng.u32(..24) {
            0..3 => bench.cut().await,
            3 => drop(bench.listen(&format!("joined in {round}"))),
            4 => drop(bench.listen_slowly(&format!("slow, joined in {round}"), Duration::from_millis(rng.u64(..5000)))),
            5 | 6 => guests.push(guest(&bench, round, &mut rng)),
            7 if !guests.is_empty() => bench.remove(guests.swap_remove(rng.usize(..guests.len()))).await,
            8 => bench.leave().await,
            9 => bench.informer.relist(),
            10 => compare(&bench).await,
            _ => {}
        }
        sleep(Duration::from_millis(rng.u64(..12_000))).await;
    }
    bench.server.faults().clear();
    // As long as a watch that stands still may last.
    sleep(Duration::from_secs(900)).await;
    // What came in a form that cannot be used is stale until the next list.
    bench.informer.relist();
    sleep(Duration::from_secs(120)).await;
    bench.assert_true(&format!("{text} after the rain"));
    bench.write_on(3).await;
    sleep(Duration::from_secs(120)).await;
    bench.assert_true(&format!("{text} after more writes"));
    bench.assert_verified(&text).await;
    let injected = bench.server.faults().injected().len();
    bench.end(&text).await;
    injected
}

/// One that stays or goes, and has options.
fn guest<K: Sample>(bench: &Bench<K>, round: usize, rng: &mut Rng) -> (Hearing, HandlerHandle) {
    let mut options = HandlerOptions::new();
    let mut how = How::default();
    if rng.bool() {
        options = options.resync_period(Duration::from_secs(rng.u64(30..300)));
        how.with_unchanged = true;
    }
    if rng.bool() {
        options = options.tell_unchanged(true);
        how.with_unchanged = true;
    }
    if rng.bool() {
        options = options.buffer(Buffer::Coalesce);
        how.coalesces = true;
    }
    let (hearing, handle) = bench.add(&format!("guest of {round}"), how, options);
    bench.hearings.lock().unwrap().push(hearing.clone());
    (hearing, handle)
}

/// During the rain a comparison may fail, or the cache be behind: it is only to do no harm.
async fn compare<K: Sample>(bench: &Bench<K>) {
    let _ = tokio::time::timeout(Duration::from_secs(200), bench.informer.verify_against_server()).await;
}
