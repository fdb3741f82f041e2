//! The controllers go through the same server as everybody else, and through the same faults. `WATCHKEEPER_SEEDS=6` makes
//! it heavier.

use std::time::Duration;

use fastrand::Rng;
use serde_json::json;
use tokio::time::sleep;
use watchkeeper_apiserver::{Fault, Match};

use super::support::{Bench, is_owned, key, quiet};
use crate::living::api::Resource;

#[tokio::test(start_paused = true)]
async fn after_any_rain_of_faults_all_is_as_it_should_be() {
    let seeds = std::env::var("WATCHKEEPER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for seed in 0..seeds {
        let bench = Bench::start(quiet(200)).await;
        bench.living.ready().await.expect("informers");
        bench.server.faults().on(Match::any()).then(Fault::random(seed));
        let mut rng = Rng::with_seed(seed);
        let mut deployments = bench.all("apps", "deployments");
        let doomed = deployments.pop().expect("a deployment");
        bench.delete(Resource::Deployments, &doomed).await;
        for round in 0..12 {
            let deployment = &deployments[rng.usize(..deployments.len())];
            let mut containers = deployment["spec"]["template"]["spec"]["containers"].clone();
            containers[0]["image"] = format!("shop/web:{round}.0.0").into();
            let spec = match rng.bool() {
                true => json!({"replicas": rng.u32(0..12)}),
                false => json!({"template": {"spec": {"containers": containers}}}),
            };
            bench.patch_deployment(deployment, spec).await;
            sleep(Duration::from_secs(rng.u64(..40))).await;
        }
        let injected = bench.server.faults().injected().len();
        assert!(injected > 20, "seed {seed}: {injected} faults");
        bench.server.faults().clear();
        let text = format!("seed {seed} after {injected} faults");
        // As long as a watch that stands still may last.
        let limit = Duration::from_secs(1800);
        for deployment in &deployments {
            bench.until(&text, limit, |bench| bench.has_converged(&key(deployment))).await;
        }
        let is_left = |bench: &Bench| bench.all("apps", "replicasets").iter().any(|set| is_owned(set, &doomed));
        bench.until(&text, limit, |bench| !is_left(bench)).await;
        bench.stop().await;
    }
}
