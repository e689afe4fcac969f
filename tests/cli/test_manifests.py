"""The manifests for KubeRay are what Kubernetes takes and what ekphory is."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kuberay" / "ekphory.yaml"
TEXT = MANIFESTS.read_text(encoding="utf-8")
DOCUMENTS = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(TEXT)}
CLUSTER = DOCUMENTS["RayCluster", "ekphory"]["spec"]
FRONT = DOCUMENTS["Deployment", "ekphory-front"]["spec"]["template"]
TEMPLATES = {
    "head": CLUSTER["headGroupSpec"]["template"],
    "shards": CLUSTER["workerGroupSpecs"][0]["template"],
    "front": FRONT,
}
KUBERNETES = "1.33"


def check_by_schema(document):
    """Compare with the schemas of Kubernetes, in which no other field is known."""
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    validator.validate(document, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name[0] != "RayCluster"])
def test_each_manifest_is_what_kubernetes_takes(name):
    check_by_schema(DOCUMENTS[name])


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_of_pods_is_what_kubernetes_takes(name):
    head = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}}
    check_by_schema(head | {"template": TEMPLATES[name]})


def test_the_cluster_has_only_fields_that_kuberay_has():
    assert set(CLUSTER) == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert set(CLUSTER["headGroupSpec"]) == {"rayStartParams", "template"}
    (workers,) = CLUSTER["workerGroupSpecs"]
    assert set(workers) == {
        *("groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"),
    }  # fmt: skip
    parameters = [*CLUSTER["headGroupSpec"]["rayStartParams"].values()]
    assert all(isinstance(each, str) for each in [*parameters, *workers["rayStartParams"].values()])


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_pod_runs_as_nobody_special_with_bounds_and_probes(name):
    template = TEMPLATES[name]
    assert template["metadata"]["labels"]["app.kubernetes.io/component"] == name
    assert template["spec"]["securityContext"]["runAsNonRoot"]
    (container,) = template["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {"requests", "limits"} <= set(container["resources"])
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in template["spec"]["volumes"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_ray_is_joined_with_a_token_that_a_secret_holds(name):
    (container,) = TEMPLATES[name]["spec"]["containers"]
    variables = {each["name"]: each for each in container["env"]}
    assert variables["RAY_AUTH_MODE"]["value"] == "token"
    assert variables["RAY_AUTH_TOKEN"]["valueFrom"] == {
        "secretKeyRef": {"name": "ekphory", "key": "ray-auth-token"}
    }
    assert container["envFrom"] == [{"secretRef": {"name": "ekphory-storage"}}]


def test_the_selectors_meet_the_pods_that_they_are_for():
    labels = {name: each["metadata"]["labels"].items() for name, each in TEMPLATES.items()}
    for document, wanted in {
        ("Service", "ekphory"): {"front"},
        ("PodDisruptionBudget", "ekphory-shards"): {"shards"},
        ("NetworkPolicy", "ekphory"): {"head", "shards", "front"},
        ("NetworkPolicy", "ekphory-front"): {"front"},
    }.items():
        spec = DOCUMENTS[document]["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        chosen = selector.get("matchLabels", selector).items()
        assert {name for name, items in labels.items() if chosen <= items} == wanted, document


def test_the_front_runs_a_command_that_there_is(ekphory):
    script = FRONT["spec"]["containers"][0]["args"][0].replace("\\\n", " ")
    words = shlex.split(script.partition("exec ekphory ")[2])
    assert words[:2] == ["cluster", "serve"]
    assert ekphory.run(*words, "--help").exit_code == 0


def test_the_version_of_ray_is_one_that_the_package_takes():
    required = (MANIFESTS.parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    least = re.search(r'"ray\[data,serve\]>=([\d.]+),', required)
    assert CLUSTER["rayVersion"].startswith(least[1])
