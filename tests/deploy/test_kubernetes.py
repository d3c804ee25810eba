"""The manifests, by the API's own schemas, and what they say about each other (SPEC OPS-7)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.deploy.places import DOCKERFILE, KUBERNETES, container, manifest, manifests, pod, run


def test_kubernetes_takes_the_manifests_and_would_not_take_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    text = (KUBERNETES / "deployment.yaml").read_text("utf-8")
    wrong.write_text(text.replace("enableServiceLinks", "enableServiceLink"))
    files = [path for path, _ in manifests()]
    tool = Path(sys.executable).with_name("kubernetes-validate")
    code, output = run(tool, "--strict", *files, wrong)
    assert code == 1
    passed = re.findall(r"(\S+) passed for resource", output)
    assert passed == [str(file) for file in files], output


def test_the_examples_are_not_applied_with_the_rest() -> None:
    """`kubectl apply --filename FOLDER` takes .yaml: placeholders would replace secrets."""
    kinds = {one["kind"] for path, one in manifests() if path.suffix == ".yaml"}
    assert kinds == {
        "ConfigMap", "Deployment", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget",
        "Service",
    }  # fmt: skip
    assert {path.suffix for path, _ in manifests()} == {".yaml", ".example"}


@pytest.mark.parametrize("kind", [one["kind"] for _, one in manifests()])
def test_the_namespace_is_chosen_by_whoever_applies_them(kind: str) -> None:
    assert "namespace" not in manifest(kind)["metadata"]


def test_service_ingress_and_budget_mean_the_pods_of_the_deployment() -> None:
    labels = manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert manifest("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    (port,) = manifest("Service")["spec"]["ports"]
    assert port["targetPort"] in [one["name"] for one in container()["ports"]]
    (rule,) = manifest("Ingress")["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {
        "name": manifest("Service")["metadata"]["name"],
        "port": {"name": port["name"]},
    }


def test_the_network_lets_in_what_calls_the_gateway_and_out_all_but_the_keys_of_the_cloud() -> None:
    spec = manifest("NetworkPolicy")["spec"]
    labels = manifest("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"] == labels
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    (rule,) = spec["ingress"]
    assert [one["port"] for one in rule["ports"]] == [one["name"] for one in container()["ports"]]
    (source,) = rule["from"]
    (expression,) = source["namespaceSelector"]["matchExpressions"]
    assert manifest("Ingress")["spec"]["ingressClassName"] in "ingress-nginx"
    assert "ingress-nginx" in expression["values"]
    blocks = [one["ipBlock"] for rule in spec["egress"] for one in rule["to"] if "ipBlock" in one]
    assert {one["cidr"]: one["except"] for one in blocks} == {
        "0.0.0.0/0": ["169.254.169.254/32"],
        "::/0": ["fd00:ec2::254/128"],
    }


def test_what_a_pod_refers_to_is_there() -> None:
    secret, config = manifest("Secret"), manifest("ConfigMap")
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert {mount["name"] for mount in container()["volumeMounts"]} == set(volumes)
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    assert volumes["secrets"]["secret"]["secretName"] == secret["metadata"]["name"]
    keys = [item["key"] for item in volumes["secrets"]["secret"]["items"]]
    variables = [
        one["valueFrom"]["secretKeyRef"] for one in container()["env"] if "valueFrom" in one
    ]
    assert {one["name"] for one in variables} == {secret["metadata"]["name"]}
    assert {*keys, *(one["key"] for one in variables)} == set(secret["stringData"])


def test_a_rollout_never_leaves_fewer_nodes_than_there_were() -> None:
    """SPEC NODE-3."""
    spec = manifest("Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert manifest("PodDisruptionBudget")["spec"]["minAvailable"] == 1


def test_a_pod_has_no_rights_and_writes_nowhere_but_its_volumes() -> None:
    whole, one = pod()["securityContext"], container()["securityContext"]
    assert f"USER {whole['runAsUser']}:{whole['runAsGroup']}" in DOCKERFILE.read_text("utf-8")
    assert whole["runAsNonRoot"]
    assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
    assert one == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["automountServiceAccountToken"] is False
