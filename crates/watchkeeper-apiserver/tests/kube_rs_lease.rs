//! A published crate for leader election, unchanged: it takes a lease by applying it, renews it with patches, and takes a
//! conflict for a sign that somebody was faster.
//!
//! The crate reads the system's clock, so this takes some seconds of real time.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::sync::watch::Receiver;
use tokio::task::JoinHandle;
use watchkeeper_apiserver::ApiServer;

const LEASE: &str = "election";

type Running = JoinHandle<kube_lease_manager::Result<LeaseManager>>;

/// One who wants to lead. What it has ends after so many seconds, and is renewed two seconds before that.
async fn candidate(client: &Client, name: &str, seconds: u64) -> (Receiver<bool>, Running) {
    let builder = LeaseManagerBuilder::new(client.clone(), LEASE).with_identity(name);
    builder.with_duration(seconds).with_grace(2).build().await.expect("a candidate").watch().await
}

async fn lease(client: &Client) -> LeaseSpec {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    leases.get(LEASE).await.expect("a lease").spec.expect("a spec")
}

async fn leads(client: &Client, candidate: &mut Receiver<bool>, name: &str) {
    let led = tokio::time::timeout(Duration::from_secs(60), candidate.wait_for(|leads| *leads)).await;
    assert!(*led.expect("leads in time").expect("runs"));
    assert_eq!(lease(client).await.holder_identity.as_deref(), Some(name));
}

#[tokio::test]
async fn a_lease_is_taken_renewed_given_back_and_inherited() {
    let server = ApiServer::new();
    let client = server.client();
    let (mut first, first_running) = candidate(&client, "first", 3).await;
    leads(&client, &mut first, "first").await;
    let (mut second, second_running) = candidate(&client, "second", 3).await;
    let taken = lease(&client).await;
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let renewed = lease(&client).await;
    assert!(renewed.renew_time > taken.renew_time);
    let unchanged = |lease: &LeaseSpec| (lease.holder_identity.clone(), lease.acquire_time.clone());
    assert_eq!(unchanged(&renewed), unchanged(&taken));
    assert!(*first.borrow() && !*second.borrow());

    // Who no longer listens gives the lease back.
    drop(first);
    first_running.await.expect("ends").expect("is given back");
    leads(&client, &mut second, "second").await;
    assert_eq!(lease(&client).await.lease_transitions, taken.lease_transitions.map(|count| count + 1));

    // Who dies keeps it until its time is over.
    second_running.abort();
    let (mut third, third_running) = candidate(&client, "third", 3).await;
    assert_eq!(lease(&client).await.holder_identity.as_deref(), Some("second"));
    leads(&client, &mut third, "third").await;
    drop(third);
    third_running.await.expect("ends").expect("is given back");
    assert_eq!(lease(&client).await.holder_identity, None);
}

#[tokio::test]
async fn one_of_many_who_want_it_at_once_leads() {
    let server = ApiServer::new();
    let client = server.client();
    let names: Vec<String> = (0..10).map(|i| format!("c{i}")).collect();
    let candidates = futures::future::join_all(names.iter().map(|name| candidate(&client, name, 60))).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let leaders: Vec<&String> =
        names.iter().zip(&candidates).filter(|(_, (leads, _))| *leads.borrow()).map(|(name, _)| name).collect();
    assert_eq!(leaders, [lease(&client).await.holder_identity.as_ref().expect("a holder")]);
}
