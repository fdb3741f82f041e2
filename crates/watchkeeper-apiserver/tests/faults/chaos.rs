//! A rain of faults, from many seeds. `WATCHKEEPER_SEEDS=1000` makes it heavier, `WATCHKEEPER_SEED=17` repeats one.

use std::time::Duration;

use tokio::time::sleep;
use watchkeeper_apiserver::{Fault, Match};

use crate::support::{Bench, Mode};

#[tokio::test(start_paused = true)]
async fn after_any_rain_of_faults_the_copy_is_true() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("WATCHKEEPER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WATCHKEEPER_SEEDS").unwrap_or(50),
    };
    let mut injected = 0;
    for seed in seeds {
        injected += rain(seed).await;
    }
    println!("{injected} faults were injected");
}

async fn rain(seed: u64) -> usize {
    let mode = if seed.is_multiple_of(2) { Mode::Streaming } else { Mode::Paged };
    let bench = Bench::start_with(mode, seed, |server| {
        server.faults().on(Match::any()).then(Fault::random(seed));
    })
    .await;
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..150 {
        bench.write_some();
        if rng.u32(..8) == 0 {
            bench.cut().await;
        }
        sleep(Duration::from_millis(rng.u64(..12_000))).await;
    }
    bench.server.faults().clear();
    bench.settle().await;
    bench.expect(&format!("WATCHKEEPER_SEED={seed} ({mode:?}) after the rain"), bench.compare_versions());
    bench.write_on().await;
    bench.assert_true(&format!("WATCHKEEPER_SEED={seed} ({mode:?}) after more writes"));
    bench.server.faults().injected().len()
}
