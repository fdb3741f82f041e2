//! ConfigMaps and Secrets. Nothing in them is a secret: all values are made up.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::living::world::App;

/// The settings of an application.
pub(in crate::living) fn map(app: &App, rng: &mut Rng) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": app.config_name(), "namespace": app.namespace, "labels": app.labels()},
        "data": {
            "revision": "1",
            "log.level": "info",
            "cache.ttl": format!("{}s", rng.u32(5..600)),
            "pool.size": rng.u32(4..64).to_string(),
            "application.yaml": format!(
                "server:\n  port: {}\n  timeout: {}s\nfeatures:\n  fast-path: {}\n  dark-mode: {}\n",
                app.port, rng.u32(1..30), rng.bool(), rng.bool()
            ),
        },
    })
}

/// Switches of a namespace.
pub(in crate::living) fn switches(namespace: &str, number: usize, rng: &mut Rng) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("switches-{number}"), "namespace": namespace},
        "data": {"revision": "1", "experiment": rng.bool().to_string(), "share": format!("{}%", rng.u32(0..100))},
    })
}

/// The password of an application: letters without a meaning.
pub(in crate::living) fn secret(app: &App, rng: &mut Rng) -> Value {
    let password: String = (0..24).map(|_| rng.alphanumeric()).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {"name": app.secret_name(), "namespace": app.namespace, "labels": app.labels()},
        "data": {"username": base64(app.name.as_bytes()), "password": base64(password.as_bytes())},
    })
}

/// Secrets are written in base64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_everybody_else() {
        assert_eq!(
            ["", "a", "ab", "abc", "abcd"].map(|text| base64(text.as_bytes())),
            ["", "YQ==", "YWI=", "YWJj", "YWJjZA=="]
        );
    }
}
