//! By which names the server may be called.
//!
//! A web page can let its own name lead to 127.0.0.1 ("DNS rebinding"); the browser then takes this server for a part of
//! that page. But the page's name is in the request. So only names that no page can have are answered.

use std::net::{IpAddr, SocketAddr};

use http::header::HOST;
use http::uri::Authority;
use http::{Request, StatusCode};

use crate::failure::Failure;
use crate::validation::quoted;

/// The names of a server.
pub(super) struct Hosts {
    address: SocketAddr,
    /// The port that a client leaves out.
    default_port: u16,
    allowed: Vec<String>,
}

impl Hosts {
    pub(super) fn new(address: SocketAddr, tls: bool, allowed: &[String]) -> Self {
        Self { address, default_port: if tls { 443 } else { 80 }, allowed: allowed.to_vec() }
    }

    /// Refuses a request that calls the server by a name that is none of its own, or by none.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Failure> {
        let in_uri = request.uri().authority().map(Authority::as_str);
        let in_headers = request.headers().get_all(HOST).iter().map(|value| value.to_str().unwrap_or_default());
        let mut names = in_uri.into_iter().chain(in_headers).peekable();
        if names.peek().is_none() {
            return Err(Failure::bad_request("the request has no Host header"));
        }
        match names.find(|name| !self.is_ours(name)) {
            None => Ok(()),
            Some(foreign) => {
                let text = format!(
                    "the host {} is none of this server's names; ListenOptions::allowed_hosts adds one",
                    quoted(foreign)
                );
                Err(Failure::new(StatusCode::FORBIDDEN, "Forbidden", text))
            }
        }
    }

    fn is_ours(&self, name: &str) -> bool {
        let Ok(authority) = name.parse::<Authority>() else {
            return false;
        };
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => Some(self.default_port),
            // Anything else in front of or behind the name is no port: `user@localhost`.
            Some(_) => authority.port_u16(),
            None => None,
        };
        let Some(port) = port else {
            return false;
        };
        if self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
            return true;
        }
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let known = match address.parse::<IpAddr>() {
            // A server on all addresses does not know them; and no page can have a number as its name.
            Ok(address) => address.is_loopback() || address == self.address.ip() || self.address.ip().is_unspecified(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        known && port == self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, allowed: &[&str]) -> Hosts {
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        Hosts::new(address.parse().unwrap(), false, &allowed)
    }

    #[test]
    fn only_names_that_no_web_page_can_have_are_ours() {
        let ours = hosts("127.0.0.1:8001", &["tunnel.test"]);
        for name in ["localhost:8001", "LOCALHOST:8001", "127.0.0.1:8001", "[::1]:8001", "tunnel.test", "tunnel.test:9"]
        {
            assert!(ours.is_ours(name), "{name}");
        }
        for name in [
            "evil.test",
            "evil.test:8001",
            "localhost",
            "localhost:8002",
            "localhost:",
            "localhost.evil.test:8001",
            "10.0.0.1:8001",
            "user@localhost:8001",
            "localhost:8001/",
            "localhost:99999",
            "",
            "[::1",
        ] {
            assert!(!ours.is_ours(name), "{name}");
        }
    }

    #[test]
    fn the_default_port_may_be_left_out_where_it_is_the_port() {
        assert!(hosts("127.0.0.1:80", &[]).is_ours("localhost"));
        assert!(!hosts("127.0.0.1:443", &[]).is_ours("localhost"));
    }

    #[test]
    fn a_server_on_all_addresses_is_called_by_any_of_them() {
        let ours = hosts("0.0.0.0:8001", &[]);
        assert!(ours.is_ours("10.0.0.1:8001") && !ours.is_ours("evil.test:8001"));
    }

    #[test]
    fn every_name_in_a_request_has_to_be_ours() {
        let ours = hosts("127.0.0.1:8001", &[]);
        let code = |request: Request<()>| ours.check(&request).map_or_else(|failure| failure.code(), |()| 200);
        let get = |uri: &str| Request::get(uri);
        assert_eq!(code(get("/").header(HOST, "localhost:8001").body(()).unwrap()), 200);
        assert_eq!(code(get("http://localhost:8001/").body(()).unwrap()), 200);
        assert_eq!(code(get("http://evil.test/").header(HOST, "localhost:8001").body(()).unwrap()), 403);
        assert_eq!(code(get("/").header(HOST, "localhost:8001").header(HOST, "evil.test").body(()).unwrap()), 403);
        assert_eq!(code(get("/").body(()).unwrap()), 400);
    }
}
