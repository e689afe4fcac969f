"""Memories and features in the shapes of the wire."""

from __future__ import annotations

from collections.abc import Sequence

from ekphory.server.wire.memories import (
    EpisodicMemory,
    FeatureMetadata,
    FoundEpisode,
    ListedEpisode,
    LongTermMemory,
    SemanticFeature,
    ShortTermMemory,
)
from ekphory.service.episode import Episode, FoundEpisodes
from ekphory.service.feature import Feature
from ekphory.service.place import Place
from ekphory.service.uids import Uids
from ekphory.service.wire_names import shown_metadata
from ekphory.types import MemoryRecord


def found_episodes(found: FoundEpisodes, place: Place, uids: Uids) -> EpisodicMemory:
    """Give what episodic memory found."""
    episodes = (*found.long_term, *found.short_term)
    # All at once: what the catalog knows of ids is read once.
    shown = uids.shown(place, [each.record.id for each in episodes])
    shaped = [_found(each, uid) for each, uid in zip(episodes, shown, strict=True)]
    long_term = len(found.long_term)
    return EpisodicMemory(
        long_term_memory=LongTermMemory(episodes=shaped[:long_term]),
        short_term_memory=ShortTermMemory(
            episodes=shaped[long_term:],
            # MemMachine's clients expect one text; nothing here sums up.
            episode_summary=[""],
        ),
    )


def listed_episodes(
    records: Sequence[MemoryRecord], place: Place, uids: Uids
) -> list[ListedEpisode]:
    """Give episodes as they are kept."""
    shown = uids.shown(place, [record.id for record in records])
    return [_listed(record, place, uid) for record, uid in zip(records, shown, strict=True)]


def _listed(record: MemoryRecord, place: Place, uid: str) -> ListedEpisode:
    metadata = shown_metadata(record.metadata)
    return ListedEpisode(
        uid=uid,
        content=record.text,
        session_key=place.session_key,
        created_at=record.at,
        producer_id=record.producer,
        producer_role=record.role,
        produced_for_id=record.produced_for,
        sequence_num=record.sequence or 0,
        filterable_metadata=metadata,
        metadata=metadata,
    )


def shown_feature(feature: Feature, *, citations: list[str] | None) -> SemanticFeature:
    """Give a feature, with the citations that are to be shown."""
    return SemanticFeature(
        set_id=feature.set_id,
        category=feature.category,
        tag=feature.tag,
        feature_name=feature.name,
        value=feature.value,
        metadata=FeatureMetadata(
            citations=citations, id=feature.id, other=dict(feature.metadata) or None
        ),
    )


def cited_features(features: Sequence[Feature], place: Place, uids: Uids) -> list[SemanticFeature]:
    """Give features with their citations."""
    return [shown_feature(each, citations=uids.shown(place, each.citations)) for each in features]


def _found(episode: Episode, uid: str) -> FoundEpisode:
    record = episode.record
    return FoundEpisode(
        uid=uid,
        score=episode.score,
        content=record.text,
        producer_id=record.producer,
        producer_role=record.role,
        produced_for_id=record.produced_for,
        metadata=shown_metadata(record.metadata),
        created_at=record.at,
    )
