//! Names of informers, and who may publish under them.

use std::sync::{Arc, Barrier};

use watchkeeper::InformerIdentity;
use watchkeeper::metrics::{InformerNames, NameError};

#[test]
fn a_name_is_unique_not_empty_and_free_again_when_it_is_dropped() {
    let names = InformerNames::new();
    let web = names.reserve("web").expect("a free name");
    assert_eq!(web.as_str(), "web");
    assert_eq!(names.reserve("web").err(), Some(NameError::Taken("web".into())));
    assert_eq!(names.clone().reserve("web").err(), Some(NameError::Taken("web".into())), "a clone is the same");
    assert_eq!(names.reserve("").err(), Some(NameError::Empty));
    assert!(names.reserve("Web").is_ok(), "another name");
    drop(web);
    assert!(names.reserve("web").is_ok());
}

#[test]
fn a_name_is_in_use_until_its_last_clone_is_dropped() {
    let names = InformerNames::new();
    let web = names.reserve("web").expect("a free name");
    let clone = web.clone();
    drop(web);
    assert!(names.reserve("web").is_err());
    drop(clone);
    assert!(names.reserve("web").is_ok());
}

#[test]
fn two_places_where_metrics_go_do_not_know_each_others_names() {
    let (one, other) = (InformerNames::new(), InformerNames::new());
    let (one, other) = (one.reserve("web"), other.reserve("web"));
    assert!(one.is_ok() && other.is_ok());
}

#[test]
fn the_first_of_a_resource_is_reserved_a_duplicate_is_not_and_one_without_a_name_is_not() {
    let name = InformerNames::new().reserve("web").expect("a free name");
    let first = name.with_resource("apps", "v1", "deployments");
    assert!(first.is_reserved());
    assert_eq!((first.name(), first.group(), first.version(), first.resource()), ("web", "apps", "v1", "deployments"));
    assert!(!name.with_resource("apps", "v1", "deployments").is_reserved());
    assert!(!name.clone().with_resource("apps", "v1", "deployments").is_reserved());
    for (group, version, resource) in
        [("", "v1", "deployments"), ("apps", "v2", "deployments"), ("apps", "v1", "daemonsets")]
    {
        assert!(name.with_resource(group, version, resource).is_reserved(), "{group}/{version}/{resource}");
    }
    assert!(!InformerIdentity::unnamed("apps", "v1", "deployments").is_reserved());
}

#[test]
fn releasing_a_name_takes_all_reservations_back() {
    let names = InformerNames::new();
    let name = names.reserve("web").expect("a free name");
    let (pods, nodes) = (name.with_resource("", "v1", "pods"), name.with_resource("", "v1", "nodes"));
    let clone = pods.clone();
    drop(name);
    assert!(!pods.is_reserved() && !nodes.is_reserved() && !clone.is_reserved());

    let again = names.reserve("web").expect("the name is free again");
    assert!(!pods.is_reserved(), "the name is another's now");
    assert!(again.with_resource("", "v1", "pods").is_reserved());
}

#[test]
fn a_resource_is_free_again_when_the_last_of_its_first_identity_is_dropped() {
    let name = InformerNames::new().reserve("web").expect("a free name");
    let first = name.with_resource("", "v1", "pods");
    let (clone, duplicate) = (first.clone(), name.with_resource("", "v1", "pods"));
    drop((first, duplicate));
    assert!(clone.is_reserved());
    assert!(!name.with_resource("", "v1", "pods").is_reserved(), "a clone of the first lives");
    drop(clone);
    assert!(name.with_resource("", "v1", "pods").is_reserved());
}

#[test]
fn of_many_that_ask_at_once_one_is_reserved() {
    let name = InformerNames::new().reserve("web").expect("a free name");
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (name, barrier) = (name.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                name.with_resource("", "v1", "pods")
            })
        })
        .collect();
    let identities: Vec<InformerIdentity> = threads.into_iter().map(|thread| thread.join().expect("joined")).collect();
    assert_eq!(identities.iter().filter(|identity| identity.is_reserved()).count(), 1);
}
