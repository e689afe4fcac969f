"""One reader: arguments before the environment before the file before defaults."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.cases import read_cases

from ekphory.agent.configuration import current_agent_settings, read_agent_settings
from ekphory.agent.llm_session import ModelProvider
from ekphory.agent.provider import AgentSettings
from ekphory.errors import InvalidInput
from ekphory.retrieval.ranking_rerankers import IdentityReranker

CASES = read_cases(__file__)

FILE = Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
KEYS = {"OPENAI_KEY": "sk-geheim", "CLAUDE_KEY": "ak-geheim"}


@pytest.fixture
def read(tmp_path):
    def read(text=FILE, *, environment=None, **arguments):
        file = tmp_path / "cfg.yml"
        file.write_text(text, encoding="utf-8")
        return read_agent_settings(
            file, arguments=arguments, environment=KEYS if environment is None else environment
        )

    return read


def test_without_a_file_the_published_limits_hold(tmp_path):
    # Without anything the local provider holds sessions with the published limits.
    settings = read_agent_settings(environment={})
    assert settings.provider == "local"
    assert settings.agent_session_timeout_seconds == 180
    assert settings.agent_session_max_combined_calls == 10
    assert settings.agent_session_max_retry_interval_seconds == 120
    assert settings.anthropic_max_output_tokens == 2048
    assert settings.anthropic_model == "claude-sonnet-4-5"
    assert settings.agent_session_log_raw_output is False
    assert settings.openai_native_agent_environment == "local"
    # The file is found through the environment.
    file = tmp_path / "cfg.yml"
    file.write_text("retrieval_agent: {agent_session_max_combined_calls: 3}", encoding="utf-8")
    settings = read_agent_settings(environment={"EKPHORY_CONFIG": str(file)})
    assert settings.agent_session_max_combined_calls == 3


def test_the_file_is_read_with_its_variables_and_ids(read):
    # The file is read with its variables.
    settings = read()
    assert settings.agent_session_timeout_seconds == 60
    assert settings.anthropic_api_key == "ak-geheim"
    # The language model is found by its id.
    settings = read(llm_model="large")
    assert (settings.llm_model.model, settings.llm_model.base_url) == (
        "gpt-large",
        "http://localhost:9/v1",
    )
    assert settings.provider == "openai"
    # A reranker is found by its id.
    assert read().reranker == IdentityReranker("plain")
    assert read(reranker="served").reranker.name


def test_every_setting_may_be_given_by_the_file(read):
    settings = read(
        """
retrieval_agent:
  agent_session_provider: anthropic
  agent_session_timeout_seconds: 30
  agent_session_max_combined_calls: 4
  agent_session_log_raw_output: true
  agent_native_bundle_root: /tmp/bundles
  agent_session_max_retry_interval_seconds: 5
  openai_native_agent_environment: container_auto
  anthropic_model: claude-x
  anthropic_api_key: $CLAUDE_KEY
  anthropic_base_url: http://localhost:9
  anthropic_max_output_tokens: 77
"""
    )
    assert settings == AgentSettings(
        agent_session_provider="anthropic",
        agent_session_timeout_seconds=30,
        agent_session_max_combined_calls=4,
        agent_session_log_raw_output=True,
        agent_native_bundle_root="/tmp/bundles",
        agent_session_max_retry_interval_seconds=5,
        openai_native_agent_environment="container_auto",
        anthropic_model="claude-x",
        anthropic_api_key="ak-geheim",
        anthropic_base_url="http://localhost:9",
        anthropic_max_output_tokens=77,
    )
    with pytest.raises(InvalidInput, match="openai_native_agent_environment"):
        read("retrieval_agent: {openai_native_agent_environment: somewhere}")


@pytest.mark.parametrize("written", ["$CLAUDE_KEY", "${CLAUDE_KEY}"])
def test_a_key_may_be_the_name_of_a_variable_in_either_writing(read, written):
    text = f'retrieval_agent: {{anthropic_api_key: "{written}"}}'
    assert read(text).anthropic_api_key == "ak-geheim"
    with pytest.raises(InvalidInput, match="Set CLAUDE_KEY"):
        read(text, environment={})


def test_the_environment_goes_before_the_file_and_arguments_before_both(read):
    # The environment goes before the file and arguments before both.
    name = "EKPHORY_RETRIEVAL_AGENT_AGENT_SESSION_MAX_COMBINED_CALLS"
    environment = KEYS | {name: "7"}
    assert read(environment=environment).agent_session_max_combined_calls == 7
    given = read(environment=environment, agent_session_max_combined_calls=8)
    assert given.agent_session_max_combined_calls == 8
    # A variable says yes or no in words.
    name = "EKPHORY_RETRIEVAL_AGENT_AGENT_SESSION_LOG_RAW_OUTPUT"
    assert read(environment=KEYS | {name: "yes"}).agent_session_log_raw_output is True
    with pytest.raises(InvalidInput, match="must be true or false"):
        read(environment=KEYS | {name: "maybe"})


def test_without_one_the_model_of_short_term_memory_is_taken_then_that_of_semantic_memory(read):
    assert read().llm_model.model == "gpt-small"
    semantic = FILE.replace(
        "episodic_memory:\n  short_term_memory: {llm_model: small}\n", ""
    ).replace("  long_term_memory: {reranker: plain}\n", "semantic_memory: {llm_model: large}\n")
    assert read(semantic).llm_model.model == "gpt-large"


@pytest.mark.parametrize(("text", "told"), CASES["refused"])
def test_what_cannot_be_used_is_refused_with_the_remedy(read, text, told):
    with pytest.raises(InvalidInput) as refused:
        read(text, environment={})
    assert told in str(refused.value)


def test_an_unknown_key_id_protocol_or_argument_is_refused(read):
    # An unknown key of a model is refused with the nearest.
    with pytest.raises(InvalidInput, match="Did you mean 'api_key'"):
        read(FILE.replace("api_key: $OPENAI_KEY}}", "apikey: a}}", 1))
    # An unknown id is refused with the nearest.
    with pytest.raises(InvalidInput, match="Did you mean 'large'"):
        read(llm_model="larg")
    # A provider that is not known is refused with the nearest.
    with pytest.raises(InvalidInput, match="Did you mean 'amazon-bedrock'"):
        read(FILE.replace("amazon-bedrock", "bedrock"), llm_model="far")
    # An unknown argument is refused with the nearest.
    with pytest.raises(InvalidInput, match="Did you mean 'agent_session_provider'"):
        read_agent_settings(arguments={"agent_provider": "local"}, environment={})


def test_a_model_that_holds_no_session_leaves_the_questions_to_the_local_provider(read):
    settings = read(llm_model="far")
    assert settings.llm_model.model == "openai.gpt-oss-20b"
    assert settings.provider == "local"
    asked = read(llm_model="far", agent_session_provider="openai")
    with pytest.raises(InvalidInput, match="holds no session of an agent"):
        ModelProvider(asked)


def test_a_model_that_the_file_names_is_loaded_once_until_the_file_changes(tmp_path, monkeypatch):
    file = tmp_path / "cfg.yml"
    file.write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("EKPHORY_CONFIG", str(file))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    begin = Barrier(4)

    def read_at_once(_):
        begin.wait()
        return current_agent_settings()

    with ThreadPoolExecutor(4) as threads:
        read = list(threads.map(read_at_once, range(4)))
    assert len({id(each.reranker) for each in read}) == 1
    assert current_agent_settings().reranker is read[0].reranker
    file.write_text(FILE.replace("_seconds: 60", "_seconds: 600"), encoding="utf-8")
    assert current_agent_settings().agent_session_timeout_seconds == 600
    monkeypatch.setenv("CLAUDE_KEY", "ak-other")
    assert current_agent_settings().anthropic_api_key == "ak-other"


def test_no_secret_is_ever_shown(read):
    settings = read()
    assert "geheim" not in repr(settings)
    with pytest.raises(InvalidInput) as refused:
        read("retrieval_agent: {anthropic_api_key: [geheim]}")
    assert "geheim" not in str(refused.value)
    with pytest.raises(InvalidInput) as broken:
        read("retrieval_agent: {anthropic_api_key: 'geheim}")
    assert "geheim" not in str(broken.value)
