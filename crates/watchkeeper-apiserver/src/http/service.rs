//! The way in: a tower service.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::HOST;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use tower::{BoxError, Service};

use super::accept::{self, Discovery, accepts_gzip, representation};
use super::answer::{Answer, Body};
use super::options::Options;
use super::route::{ResourcePath, Route};
use super::warnings::Warnings;
use super::{aggregated, body, discovery, health, openapi};
use crate::access::{self, User};
use crate::failure::Failure;
use crate::faults;
use crate::kinds::{Kind, Registry};
use crate::life;
use crate::server::Inner;
use crate::validation::{path_segment, quoted};
use crate::verbs::{self, Call};

/// A server, as something that answers requests. Cheap to clone; [`ApiServer::service`](crate::ApiServer::service)
/// makes it.
///
/// ```
/// use http_body_util::{BodyExt, Empty};
/// use tower::ServiceExt;
/// use watchkeeper_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let server = ApiServer::new();
/// let request = http::Request::get("/api/v1/namespaces/default").body(Empty::<bytes::Bytes>::new())?;
/// let response = server.service().oneshot(request).await?;
/// assert_eq!(response.status(), 200);
/// let body = response.into_body().collect().await?.to_bytes();
/// assert!(body.starts_with(br#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","#));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ApiService {
    pub(crate) server: Arc<Inner>,
}

/// The server was stopped or dropped; as a refused connection is for one behind a socket.
#[derive(Debug, thiserror::Error)]
#[error("the in-memory API server is gone")]
struct Gone;

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            if server.stopping.is_cancelled() {
                return Err(Gone.into());
            }
            let gzip = accepts_gzip(request.headers());
            let stopping = server.stopping.clone();
            let response = async {
                match server.faults.is_active() {
                    false => Ok(answer(server, request).await.into_response(gzip)),
                    true => faults::answer(server, request, gzip).await,
                }
            };
            tokio::select! {
                biased;
                () = stopping.cancelled() => Err(Gone.into()),
                response = response => response,
            }
        })
    }
}

/// The answer to a request: every request has one.
pub(crate) async fn answer<B>(server: Arc<Inner>, request: Request<B>) -> Answer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let (rules, found) = (server.settings.access.as_deref(), parts.extensions.get::<Arc<User>>());
    let user = match access::check(rules, found, &parts.method, &parts.uri, &parts.headers) {
        Ok(user) => user,
        Err(failure) => return failure.into(),
    };
    let query = parts.uri.query().unwrap_or_default();
    let is_get = parts.method == Method::GET;
    match Route::of(parts.uri.path()) {
        Route::Health { endpoint, check } => match Options::of(query) {
            Ok(options) => health::answer(&endpoint, check.as_deref(), &options),
            Err(failure) => failure.into(),
        },
        Route::OpenApiV2 => openapi::older(&server, &parts.headers),
        Route::OpenApiV3 { path: None } => openapi::index(&server),
        Route::OpenApiV3 { path: Some(path) } => openapi::document(&server, &path, query, &parts.headers),
        Route::Unknown => Answer::page_not_found(),
        Route::NoResource { group } if !is_built_in(&server, &group) => Answer::page_not_found(),
        Route::NoResource { .. } => Failure::no_such_resource().into(),
        Route::Resource(path) if !leads_somewhere(&server, &path) => Answer::page_not_found(),
        Route::Resource(path) => {
            let answer = resource(&server, user, path, &parts.method, query, &parts.headers, body).await;
            answer.unwrap_or_else(Answer::from)
        }
        _ if !is_get => Failure::method_not_allowed().into(),
        Route::Index => index(&server),
        Route::Version => Answer::json(StatusCode::OK, server.version.clone()),
        route => discover(&server.registry, route, &parts.headers).unwrap_or_else(Answer::from),
    }
}

/// What there is: all in one document where the client asks for that, else a document for each question.
fn discover(registry: &Registry, route: Route, headers: &HeaderMap) -> Result<Answer, Failure> {
    Ok(match (route, accept::discovery(headers)?) {
        (Route::CoreVersions, Discovery::Aggregated) => aggregated::answer(registry, true, headers),
        (Route::Groups, Discovery::Aggregated) => aggregated::answer(registry, false, headers),
        (_, Discovery::Aggregated) => return Err(Failure::unknown_representation()),
        (Route::CoreVersions, _) => discovery::core_versions(host(headers)),
        (Route::Groups, _) => discovery::groups(registry),
        (Route::Group(group), _) => discovery::group(registry, &group),
        (Route::Resources { group, version }, _) => discovery::resources(registry, &group, &version),
        _ => Answer::page_not_found(),
    })
}

/// What the client calls the server.
fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:6443")
}

async fn resource<B>(
    server: &Arc<Inner>,
    user: Arc<User>,
    path: ResourcePath,
    method: &Method,
    query: &str,
    headers: &HeaderMap,
    body: B,
) -> Result<Answer, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let kind = server.registry.find(&path.group, &path.plural).ok_or_else(Failure::no_such_resource)?;
    let version = kind.version(&path.version).ok_or_else(Failure::no_such_resource)?.name.clone();
    let mut options = Options::of(query)?;
    options.watch |= path.watch;
    let warnings = Warnings::default();
    if let Some(text) = deprecation(&kind, &version) {
        warnings.add(text);
    }
    // Who is refused is warned as well.
    let verb = match verb(&kind, &path, &version, method, &options).and_then(|verb| named(&path).map(|()| verb)) {
        Ok(verb) => verb,
        Err(failure) => return Ok(Answer::from(failure).with_warnings(&warnings)),
    };
    let mut call = Call {
        server: server.clone(),
        kind,
        version,
        namespace: path.namespace,
        name: path.name,
        subresource: path.subresource,
        options,
        representation: representation(headers)?,
        media_type: body::media_type(headers),
        user_agent: body::user_agent(headers),
        body: body::read(body).await?,
        warnings: warnings.clone(),
        user,
    };
    body::translate(&mut call)?;
    let answer = match (verb, call.subresource.as_deref()) {
        (Verb::Create, Some("binding")) => verbs::binding::run(call),
        (Verb::Create, Some("eviction")) => verbs::eviction::run(call),
        (Verb::Get, Some("scale")) => verbs::scale::get(call),
        (Verb::Update, Some("scale")) => verbs::scale::put(call),
        (Verb::Patch, Some("scale")) => verbs::scale::patch(call),
        (_, Some(name)) if !["status", "finalize"].contains(&name) => Err(missing(&call, name)),
        (Verb::Get, _) => verbs::get::run(call).await,
        (Verb::List, _) => verbs::list::run(call).await,
        (Verb::Watch, _) => verbs::watch::run(call).await,
        // Reviews, bindings and the like are calls, not objects.
        (Verb::Create, _) if call.kind.plural == "bindings" && !call.version().allows("get") => {
            verbs::binding::run(call)
        }
        (Verb::Create, _) if !call.version().allows("get") => verbs::reviews::run(call),
        (Verb::Create, _) => verbs::create::run(call),
        (Verb::Update, _) => verbs::update::run(call),
        (Verb::Patch, _) => verbs::patch::run(call),
        (Verb::Delete, _) => verbs::delete::run(call),
        (Verb::DeleteCollection, _) => verbs::delete_collection::run(call).await,
    };
    // What follows from a write is done before its answer is seen.
    if !matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
        life::settle(server).await;
    }
    Ok(answer.unwrap_or_else(Answer::from).with_warnings(&warnings))
}

/// What is to be said of a kind that will not be there for ever.
fn deprecation(kind: &Kind, version: &str) -> Option<String> {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
        }
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+".to_owned()),
        _ => kind.version(version)?.served.as_ref()?.deprecation.clone(),
    }
}

/// A name in a path must be one that a path can have.
fn named(path: &ResourcePath) -> Result<(), Failure> {
    let Some(name) = &path.name else { return Ok(()) };
    match path_segment(name).as_slice() {
        [] => Ok(()),
        faults => Err(Failure::bad_request(format!("Name parameter invalid: {}: {}", quoted(name), faults.join(";")))),
    }
}

/// Why there is nothing beneath an object.
fn missing(call: &Call, subresource: &str) -> Failure {
    match call.server.storage.get(&call.kind, &call.key()) {
        Some(_) => Failure::not_implemented(format_args!("the subresource {subresource}")),
        None => Failure::not_found(&call.kind, call.name()),
    }
}

/// What a request asks for, if it asks for objects of a kind that there is: what a fault may happen to.
pub(crate) fn verb_of(
    server: &Inner,
    method: &Method,
    uri: &Uri,
) -> Option<(&'static str, Arc<Kind>, ResourcePath, Options)> {
    let Route::Resource(path) = Route::of(uri.path()) else { return None };
    let kind = server.registry.find(&path.group, &path.plural)?;
    let mut options = Options::of(uri.query().unwrap_or_default()).ok()?;
    options.watch |= path.watch;
    let verb = verb(&kind, &path, &path.version, method, &options).ok()?;
    Some((verb.name(), kind, path, options))
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// What is to be done, if it can be done to this kind at this path.
fn verb(kind: &Kind, path: &ResourcePath, version: &str, method: &Method, options: &Options) -> Result<Verb, Failure> {
    if is_misplaced(kind, path) {
        return Err(Failure::no_such_resource());
    }
    let version = kind.version(version).ok_or_else(Failure::no_such_resource)?;
    let allowed = match &path.subresource {
        None => &version.verbs,
        Some(name) => match version.subresource(name) {
            Some(subresource) => &subresource.verbs,
            None if kind.custom => return Err(Failure::not_found(kind, path.name.as_deref().unwrap_or_default())),
            None => return Err(Failure::no_such_resource()),
        },
    };
    // What can only be created has no names.
    if path.name.is_some() && path.subresource.is_none() && allowed.iter().all(|verb| verb == "create") {
        return Err(Failure::no_such_resource());
    }
    let verb = match (method.as_str(), &path.name) {
        ("GET", Some(_)) if path.watch => Verb::Watch,
        ("GET", Some(_)) => Verb::Get,
        ("GET", None) if options.watch => Verb::Watch,
        ("GET", None) => Verb::List,
        ("POST", None) if path.namespace.is_some() == kind.namespaced => Verb::Create,
        ("POST", Some(_)) if path.subresource.is_some() => Verb::Create,
        ("PUT", Some(_)) => Verb::Update,
        ("PATCH", Some(_)) => Verb::Patch,
        ("DELETE", Some(_)) => Verb::Delete,
        ("DELETE", None) if path.namespace.is_some() == kind.namespaced => Verb::DeleteCollection,
        _ => return Err(Failure::method_not_allowed()),
    };
    // Of a kind that is going nothing is advertised but what helps it to go. Creating is refused where objects are made.
    let is_allowed = allowed.iter().any(|allowed| allowed == verb.name()) || kind.terminating;
    match is_allowed {
        true => {}
        false if kind.custom || matches!(verb, Verb::Watch) => {
            return Err(Failure::verb_not_supported(kind, verb.name()));
        }
        false => return Err(Failure::method_not_allowed()),
    }
    Ok(verb)
}

/// Objects in namespaces are only reached through their namespace, others only without one.
fn is_misplaced(kind: &Kind, path: &ResourcePath) -> bool {
    path.namespace.is_some() != kind.namespaced && (path.name.is_some() || path.namespace.is_some())
}

/// Whether a group has kinds that are always there.
fn is_built_in(server: &Inner, group: &str) -> bool {
    group.is_empty() || server.registry.all().iter().any(|kind| kind.group == group && !kind.custom)
}

/// Whether there is an API at a path. In groups of custom kinds, what is not served is not there at all.
fn leads_somewhere(server: &Inner, path: &ResourcePath) -> bool {
    let kind = server.registry.find(&path.group, &path.plural);
    let is_served = kind.is_some_and(|kind| kind.version(&path.version).is_some() && !is_misplaced(&kind, path));
    is_served || is_built_in(server, &path.group)
}

/// `/`: the paths that there are.
fn index(server: &Inner) -> Answer {
    let mut paths: Vec<String> =
        ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .to_vec();
    for kind in server.registry.all().iter().filter(|kind| !kind.group.is_empty()) {
        paths.push(format!("/apis/{}", kind.group));
        paths.extend(kind.versions.iter().map(|version| format!("/apis/{}", version.api_version)));
    }
    paths.sort_unstable();
    paths.dedup();
    let document = serde_json::json!({ "paths": paths });
    Answer::json(StatusCode::OK, serde_json::to_vec_pretty(&document).unwrap_or_default())
}
