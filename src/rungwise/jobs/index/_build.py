"""Making an index of a collection, and keeping up with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, require_there
from rungwise.core.disk import usable_cache
from rungwise.core.disk.folders import require_writable_folder
from rungwise.core.network import address_of
from rungwise.core.text import IdleCase, idle_where, refuse_idle
from rungwise.jobs._job import function_of
from rungwise.jobs._models import (
    DEFAULT,
    encoding_in,
    load_in_worker,
    location,
    model_files,
    model_of,
    read_dual_encoder,
    say_cut,
    say_default,
)
from rungwise.jobs._python_values import as_collection
from rungwise.jobs._terminal import flag, pasted, progress_bar, say, say_issues, say_now
from rungwise.jobs.index._options import AUTO, MakeIndex
from rungwise.parts import named_modules

if TYPE_CHECKING:
    from rungwise.data import CollectionSource, ImageCaptions
    from rungwise.index import Index
    from rungwise.index.update import Changes, FilesOfItems
    from rungwise.models import DualEncoder, IndexEncoder, LazyModel, ModelFiles, PairScorer


_ANEW = "--overwrite begins anew."


@dataclass(frozen=True)
class Indexed:
    """What came of making or updating an index.

    Attributes:
        index: The index.
        changes: What was added, changed and removed.
        place: Folder or address of the index.
    """

    index: Index
    changes: Changes
    place: str


def make_index(asked: MakeIndex, *, watch: bool = False) -> Indexed:
    """Make an index or update one; with ``watch`` go on with what changes until Ctrl-C."""
    asked, collection = _with_folders(asked)
    _refuse_what_contradicts(asked, watch)
    from rungwise.index.layout import manifest

    for one in asked.pictures:
        if manifest.is_index(one):
            raise UserError(f"{one}: is an index already; search it with rungwise search {pasted(one)} 'a text'")
    out = asked.out or beside(asked.pictures[0])
    if asked.out is None and not address_of(out):
        require_writable_folder(out)
    usable_cache()  # of what frozen encoders make of pictures
    again = manifest.is_index(out) and not asked.overwrite
    run = (_Again if again else _First)(asked, out, watch, collection)
    with run.held:
        if asked.ray is not None:
            from rungwise.core.compute import cluster

            run.ray = run.held.enter_context(cluster(asked.ray, workers=asked.workers, from_outside=False))
        changes = run.once()
        if watch:
            run.watch()
    assert run.index is not None
    return Indexed(run.index, changes, run.place)


def indexed(asked: MakeIndex) -> Index:
    """Make an index or update one."""
    return make_index(asked).index


def _with_folders(asked: MakeIndex) -> tuple[MakeIndex, ImageCaptions | None]:
    """The options with the folders of a collection in its place, and the collection; None where folders are given."""
    from rungwise.data import ImageCaptions

    given: Any = asked.pictures
    if not isinstance(given, ImageCaptions):
        if given is None or (isinstance(given, tuple) and all(isinstance(one, Path) for one in given)):
            return asked, None
        given = as_collection(list(given) if isinstance(given, tuple) else given, "pictures")
    if given.source is None:
        raise UserError(
            f"{given.name}: an index follows a folder, and this collection is in memory or a part of one; write it to"
            " one with its method save(FOLDER), and index that"
        )
    refuse_idle(asked, _of_collection(given.name), option=flag)
    return replace(asked, pictures=tuple(Path(one) for one in given.source.paths)), given


def _of_collection(name: str) -> IdleCase:
    """The case that a collection is indexed which Python read."""
    return idle_where(
        "captions layout key exclude",
        lambda _: True,
        f"for {name}, which was read before and is indexed as it was read",
        "give it to rungwise.read, or leave it out",
    )


def _refuse_what_contradicts(asked: MakeIndex, watch: bool) -> None:
    """Refuse options that do not go with each other."""
    if not asked.pictures:
        raise UserError("name the folder of pictures, such as rungwise index photos")
    from rungwise.index.stores.factory import check_kind

    check_kind(asked.store)
    if len(asked.pictures) > 1 and asked.out is None:
        raise UserError(f"{len(asked.pictures)} folders make one index; name it: --out INDEX")
    if asked.ray and watch:
        raise UserError("--watch looks for single changes, which one process encodes; leave --ray out")
    if asked.workers is not None and asked.workers < 1:
        raise UserError(f"--workers {asked.workers}: is a number of Ray's workers; give at least 1")


class _Run:
    """One run of the command: the model, the index, and their messages.

    Attributes:
        collection: The collection that Python gave in place of its folders; None where folders were given.
        given: The model, or its name.
        model: Model, opened already or when it first encodes.
        ray: Connected module of Ray, where its workers open and encode the pictures.
        held: Contexts that end with the run.
        listing: What stood in the folders of the collection before it was read; empty where it cannot tell.
    """

    given: str | PairScorer
    model: IndexEncoder
    ray: Any = None
    index: Index | None = None
    listing: str = ""

    def __init__(self, asked: MakeIndex, out: Path, watched: bool, collection: ImageCaptions | None = None) -> None:
        from rungwise.index.stores import named

        self.asked, self.out, self.place, self.watched, self.collection = asked, out, named(out), watched, collection
        self.held = ExitStack()

    @property
    def name(self) -> str:
        """Where the model is: a folder or a name; empty for one that was given loaded."""
        return self.given if isinstance(self.given, str) else ""

    def once(self) -> Changes:
        """Read the collection, print its issues, and update the index."""
        raise NotImplementedError

    def _source(self, before: CollectionSource | None = None) -> CollectionSource:
        """What the command line names, and beside that what the index remembers; of a collection, its own source."""
        from rungwise.data import source_of_files

        asked = self.asked
        layout = None if asked.layout == AUTO else asked.layout
        # An index of several folders has their names in its ids, also where one is given alone.
        several = len(asked.pictures) > 1 or (before is not None and bool(before.names))
        pictures = asked.pictures if several else asked.pictures[0]
        own = None if self.collection is None else self.collection.source
        given = own or source_of_files(
            pictures, layout=layout, captions=asked.captions, key=asked.key, exclude=asked.exclude
        )
        if before is None or asked.layout == AUTO:
            return given
        if before.names and not asked.allow_removals and (lacking := sorted({*before.paths} - {*given.paths})):
            raise UserError(
                f"{self.place}: was made of {' and '.join(before.paths)}; name all of them, or take the pictures of"
                f" {' and '.join(lacking)} out of it with --allow-removals"
            )
        if own is not None:
            return own
        files = before.files or ((),) * len(before.layouts)
        known = dict(zip(before.names or ("",), zip(before.layouts, files, strict=True), strict=True))
        known = {name: known.get(name, ("", ())) for name in given.names or ("",)}
        if asked.layout is None and not asked.captions:
            # Of another folder than before it is only known what kind of collection it should be.
            same = [path in before.paths for path in given.paths]
            kept = tuple(of_name if is_same else () for (_, of_name), is_same in zip(known.values(), same, strict=True))
            given = replace(given, layouts=tuple(one for one, _ in known.values()), files=kept if any(kept) else ())
        return replace(
            given,
            captions=given.captions or ("" if given.names or asked.layout else before.captions),
            key=before.key if given.key == MakeIndex.key else given.key,
            exclude=given.exclude or before.exclude,
        )

    def _read(self, source: CollectionSource, listing: str | None = None) -> ImageCaptions:
        """Read the collection, and note what stands in its folders, unless that changed meanwhile.

        ``listing`` is what stood there just before, where that is known.
        """
        from rungwise.data import listing_of, read_again

        before = listing_of(source, without=self.out) if listing is None else listing
        data = read_again(source)
        if self.collection is not None and _content(data) != _content(self.collection):
            raise UserError(
                f"{self.collection.name}: its files now hold another collection than the one given; read them anew, or"
                " write this one to a folder with its method save(FOLDER), and index that"
            )
        # A file that came and went while the collection was read would be in neither look at its folders.
        self.listing = before if before and before == listing_of(source, without=self.out) else ""
        return data

    def _opened(self) -> DualEncoder:
        """Open the model, which then computes as the command line says."""
        asked = self.asked
        precision = "float32" if asked.ray and asked.precision == "auto" else asked.precision
        self.held.enter_context(encoding_in(self.given, precision, asked.least_cosine))
        place = self.given if self._files is None else self._files.place
        model = read_dual_encoder(place, asked.device, altered=asked.altered_model)
        if model.weights_warning:
            say(f"{self.name}: when it was trained, this was said: {model.weights_warning}")
        return model

    @cached_property
    def _files(self) -> ModelFiles | None:
        """Files of the model, which identify it before it is opened; None where it is opened in any case.

        It is opened where the command line says how it computes, so that impossible options are refused at once, and
        where it computes for long or in other processes.
        """
        asked, usual = self.asked, MakeIndex(self.asked.pictures)
        options = ("device", "precision", "least_cosine", "altered_model", "ray")
        told = self.watched or any(getattr(asked, one) != getattr(usual, one) for one in options)
        return None if told or not isinstance(self.given, str) else model_files(self.given)

    def _changed(self, data: ImageCaptions, progress: Callable[[int], None] | None = None) -> Changes:
        assert self.index is not None
        return self.index.update(
            data,
            self.model,
            progress=progress,
            rehash=self.asked.rehash,
            allow_removals=self.asked.allow_removals,
            thumbnails=self.asked.thumbnails or None,
            say=say,
            files=self._workers(),
            listing=self.listing,
        )

    def _workers(self) -> FilesOfItems | None:
        """Workers that open and encode the pictures; None where this process does."""
        if self.ray is None:
            return None
        from rungwise.index.update import Workers

        half = self.asked.precision == "bfloat16"
        load = partial(
            load_in_worker, named_modules(), location(self.name), self.asked.device, self.asked.altered_model, half
        )
        return Workers(self.ray, load, self.asked.workers, on_gpus=self.asked.device != "cpu")

    def _update(self, data: ImageCaptions) -> Changes:
        start = time.perf_counter()
        try:
            with progress_bar("pictures", len(data)) as advance:
                changes = self._changed(data, advance)
        except KeyboardInterrupt:
            say(f"interrupted; what was encoded is in {self.place}, and the same command goes on from there")
            raise
        self._say_done(changes, time.perf_counter() - start)
        return changes

    def _say_done(self, changes: Changes, seconds: float) -> None:
        assert self.index is not None
        if changes.issues:
            count = len(changes.issues)
            say(f"{count} {'picture' if count == 1 else 'pictures'} could not be read, left out:")
            say_issues(changes.issues)
        say_issues(changes.notes)
        say(f"{changes} ({changes.encoded} encoded)")
        if changes.withheld:
            say(changes.withheld_line())
        captions = self.index.caption_store.count()
        say(f"{len(self.index)} pictures, {captions} captions indexed in {seconds:.1f} s: {self.place}")
        if self.asked.explain:
            facts = self.index.picture_store.about()
            say(f"store: {facts.kind}, {'exact' if facts.exact else 'approximate'}: {facts.why}")

    def watch(self) -> None:
        """Index changes until Ctrl-C; errors are printed and do not end it."""
        from rungwise.index.update import follow

        assert self.index is not None
        source = self.index.source or self._source()

        def update() -> tuple[ImageCaptions, Changes]:
            collection = self._read(source)
            return collection, self._changed(collection)

        say(f"watching {', '.join(map(str, self.asked.pictures))}; Ctrl-C ends")
        try:
            follow(source.folders, self.out, update, say_now)
        except KeyboardInterrupt:
            say(f"ended; what was taken in is kept: {self.place}")


class _Again(_Run):
    """Update of an existing index."""

    def __init__(self, asked: MakeIndex, out: Path, watched: bool, collection: ImageCaptions | None = None) -> None:
        super().__init__(asked, out, watched, collection)
        from rungwise.index import Index

        self.index = Index.open(out)
        self.given = _named(asked.model) or self.index.manifest.model_location
        if not self.given:
            raise UserError(f"{out}: does not say where its model is; name it: --model")

    def once(self) -> Changes:
        """Update the index; the model is opened only if something is to be encoded."""
        assert self.index is not None
        from rungwise.data import listing_of
        from rungwise.index.update import Changes

        self._say_what_stays()
        start = time.perf_counter()
        before = self.index.source
        source = self._source(before)
        if before is None or not set(source.paths) <= set(before.paths):
            for one in source.paths:
                require_there(Path(one))
        self.listing = listing_of(source, without=self.out)
        if self.collection is None and self._is_up_to_date(source):
            say(f"no file was changed; rungwise inspect {pasted(self.asked.pictures[0])} lists what is not read")
            changes = Changes(unchanged=len(self.index), issues=self.index.issues)
            self._say_done(changes, time.perf_counter() - start)
            return changes
        data = self._read(source, self.listing)
        say_issues(data.issues)
        from rungwise.models import LazyModel

        lazy = self._lazy(data.captions)
        if lazy is not None and self.index.manifest.is_of(lazy):
            self.model = lazy
            say_columns(data)
        else:
            opened = self._opened()
            self.model = known = LazyModel.of(opened)
            if self._files is not None:
                self._files.keep(known.facts)
            if self.asked.model and not self.index.manifest.is_of(known):
                raise UserError(
                    f"{self.place}: was made with another model ({self.index.manifest.model_location or 'unknown'});"
                    " leave --model out, name another folder with --out, or begin anew with --overwrite"
                )
            say_columns(data)
            say_cut(opened, data.captions)
        return self._update(data)

    def _say_what_stays(self) -> None:
        """Say which options of a new index this one does not follow: the same command may have made it."""
        assert self.index is not None
        kind, wished = self.index.manifest.store, self.asked.store
        if wished not in ("auto", kind):
            say(f"--store {wished} changes nothing for an index that is there: its store stays {kind}; {_ANEW}")
        if self.asked.half and not self.index.picture_store.half:
            say(f"--half changes nothing for an index that is there: its vectors keep full precision; {_ANEW}")

    def _is_up_to_date(self, source: CollectionSource) -> bool:
        """Whether nothing is to be done, as far as can be told without reading the collection or opening the model."""
        assert self.index is not None
        manifest, lazy = self.index.manifest, self._lazy(())
        if lazy is None or self.asked.rehash or (self.asked.thumbnails and not manifest.thumbnails):
            return False
        return manifest.is_of(lazy) and self.index.holds(source, self.listing)

    def _lazy(self, captions: Sequence[str]) -> LazyModel | None:
        """The model, opened when something is to be encoded; None where its files are unknown."""
        files = self._files
        facts = None if files is None else files.facts()
        if files is None or facts is None:
            return None
        from rungwise.models import LazyModel

        def open_model() -> DualEncoder:
            model = self._opened()
            say_cut(model, captions)
            return model

        return LazyModel(facts, open_model, files.keep)


class _First(_Run):
    """Build of a new index, or replacement of one."""

    def __init__(self, asked: MakeIndex, out: Path, watched: bool, collection: ImageCaptions | None = None) -> None:
        super().__init__(asked, out, watched, collection)
        self.given = _named(asked.model) or str(DEFAULT)

    def once(self) -> Changes:
        from rungwise.data.files import FeatureRows
        from rungwise.index import Index
        from rungwise.index.layout import manifest
        from rungwise.index.update import require_ids, require_pictures

        manifest.refuse_strangers(self.out)
        model = self._opened() if self.asked.model else None
        source = self._source()
        data = self._read(source)
        say_issues(data.issues)
        require_pictures(data)
        require_ids(data)
        if model is None:  # for a folder without pictures nothing is fetched
            if isinstance(data.pictures, FeatureRows):
                raise UserError(
                    f"{data.name}: rows of features need the model that was trained on them; name it: --model"
                )
            say_default()
            model = self._opened()
        self.model = model
        say_columns(data)
        say_cut(model, data.captions)
        if self.asked.overwrite:
            return self._build(data, model)
        self.index = Index.create(
            self.out,
            model,
            name=data.name,
            model_location=location(self.name),
            store=self.asked.store,
            half=self.asked.half,
            data=data,
        )
        self._keep(model)
        try:
            return self._update(data)
        except UserError:
            if not len(self.index):
                manifest.discard(self.out)
            raise

    def _keep(self, model: DualEncoder) -> None:
        """Store the model's fingerprint by its files, so that the next run knows it without opening it."""
        if self._files is not None:
            from rungwise.models import ModelFacts

            assert self.index is not None
            self._files.keep(ModelFacts(self.index.manifest.model_fingerprint, model.dimension, model.stands_for))

    def _build(self, data: ImageCaptions, model: DualEncoder) -> Changes:
        """Build the index; it replaces an old one when it is whole."""
        from rungwise.index import Index
        from rungwise.index.update import Changes

        start = time.perf_counter()
        with progress_bar("pictures", len(data)) as advance:
            self.index = Index.build(
                data,
                model,
                self.out,
                model_location=location(self.name),
                progress=advance,
                overwrite=True,
                store=self.asked.store,
                half=self.asked.half,
                thumbnails=self.asked.thumbnails,
                files=self._workers(),
            )
        self._keep(model)
        changes = Changes(added=len(self.index), encoded=len(self.index), issues=self.index.issues)
        self._say_done(changes, time.perf_counter() - start)
        return changes


def _content(data: ImageCaptions) -> tuple[object, ...]:
    """What makes a collection another one than its files hold, such as captions that a program changed."""
    owners = tuple(data.image_of_caption.tolist())
    return data.image_ids, data.captions, owners, data.splits, data.labels, data.has_pictures


def _named(model: str | PairScorer | None) -> str | PairScorer | None:
    return model_of(model) if isinstance(model, str) else model


def say_columns(data: ImageCaptions) -> None:
    """Print which columns of the user's table are kept, and with which types."""
    if kinds := data.column_kinds:
        say("columns to filter a search by: " + ", ".join(f"{name} ({kind})" for name, kind in kinds.items()))


def beside(pictures: Path) -> Path:
    """Default folder of the index of a folder of pictures.

    >>> beside(Path("holiday/photos")).as_posix()
    'holiday/photos.index'
    """
    named = pictures if pictures.name else pictures.resolve()
    return named.with_name(f"{named.name}.index")


build_index = function_of(
    "build_index",
    MakeIndex,
    indexed,
    """
    A collection that :func:`rungwise.read` gave is indexed as it was read: its captions, layout, names and patterns
    stay. Its files are read again, as by every later update; one in memory is refused, since no update would find it.

    Returns:
        The index, for :func:`rungwise.search`.

    Raises:
        UserError: If there are no pictures, the model has no vectors, or the place of the index holds something else.

    >>> index = rungwise.build_index("photos", model="run/model")  # doctest: +SKIP
    """,
)
