//! Two schedulers: one leads, and when it is killed the other takes over.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::time::Instant;
use watchkeeper_e2e::{Failure, Programs};

use crate::stage::Stage;
use crate::wait::until;
use crate::workloads::{create, deployment_of, namespace, settled};

const NAMES: [&str; 2] = ["kube-scheduler-a", "kube-scheduler-b"];
/// A lease of its own, and short: nobody wants to wait for 15 seconds.
const FLAGS: [&str; 4] = [
    "--leader-elect-resource-name=two-schedulers",
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
];

pub(super) async fn run(programs: &Programs, stage: &mut Stage) -> Result<String, Failure> {
    let client = stage.client();
    // The one that all other cases have would do the work.
    stage.kill_component("kube-scheduler").await?;
    for name in NAMES {
        stage.start_component(name, &programs.kube_scheduler, &FLAGS)?;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    let holder = async || -> Result<Option<String>, Failure> {
        let lease = leases.get_opt("two-schedulers").await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty()))
    };
    until("a leader", async || Ok(holder().await?.is_none().then(|| "nobody holds the lease".to_owned()))).await?;
    let namespace = namespace(&client, "leaders").await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    create(&deployments, deployment_of("first", 10)).await?;
    settled(&client, &namespace, "first").await?;
    let first = holder().await?.context("nobody holds the lease")?;

    // Which process it is only its log says: it is the one that leads.
    let mut leading = Vec::new();
    for name in NAMES {
        let log = stage.component(name)?.log()?;
        if log.contains("successfully acquired lease") || log.contains("Successfully acquired lease") {
            leading.push(name);
        }
    }
    ensure!(leading.len() == 1, "these lead: {leading:?}");
    stage.kill_component(leading[0]).await?;
    let killed = Instant::now();
    create(&deployments, deployment_of("second", 10)).await?;
    until("the other leads", async || {
        Ok((holder().await?.as_ref() == Some(&first)).then(|| format!("{first} holds the lease")))
    })
    .await?;
    let took = killed.elapsed().as_secs_f64();
    settled(&client, &namespace, "second").await?;
    let transitions = leases.get("two-schedulers").await?.spec.and_then(|spec| spec.lease_transitions);
    stage.check(&["kube-scheduler", leading[0]])?;
    Ok(format!(
        "one leads and binds 10 Pods; killed, the other leads after {took:.1} s and binds 10 more ({} transition)",
        transitions.unwrap_or_default()
    ))
}
