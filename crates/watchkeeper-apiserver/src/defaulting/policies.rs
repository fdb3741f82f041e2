//! Autoscalers, network policies, webhooks and the rest: what depends on other fields.

use serde_json::{Map, Value, json};

use super::{set, text};

pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    match type_name {
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler(fields),
        "networking.v1.NetworkPolicySpec" => {
            let has_egress = fields.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
            set(fields, "policyTypes", if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        "rbac.v1.Subject" if matches!(text(fields, "kind"), "User" | "Group") => {
            set(fields, "apiGroup", "rbac.authorization.k8s.io");
        }
        "admissionregistration.v1.MutatingWebhook" => set(fields, "reinvocationPolicy", "Never"),
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest"
            if text(fields, "allocationMode") == "ExactCount" =>
        {
            set(fields, "count", 1);
        }
        _ => {}
    }
}

fn autoscaler(spec: &mut Map<String, Value>) {
    let has_metrics = spec.get("metrics").and_then(Value::as_array).is_some_and(|metrics| !metrics.is_empty());
    if !has_metrics {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".to_owned(), json!([metric]));
    }
    // Who says how to scale in one way says it for both.
    let Some(Value::Object(behavior)) = spec.get_mut("behavior") else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    for (direction, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
        if let Value::Object(rules) = behavior.entry(direction).or_insert_with(|| json!({})) {
            if direction == "scaleUp" {
                set(rules, "stabilizationWindowSeconds", 0);
            }
            set(rules, "selectPolicy", "Max");
            set(rules, "policies", policies);
        }
    }
}
