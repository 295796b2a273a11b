"""What the document of the interface says holds for whatever is asked: drawn by schemathesis from the document itself."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation, BaseSchema

from rungwise.index import Index
from rungwise.serving import create_app
from tests.colour_model import ColourModel, colour_pictures

OPERATIONS = (
    ("GET", "/api/status"),
    ("GET", "/api/search"),
    ("GET", "/api/similar/{number}"),
    ("POST", "/api/search-by-picture"),
    ("GET", "/pictures/{number}"),
)


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> BaseSchema:
    folder = tmp_path_factory.mktemp("served")
    index = Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(index, ColourModel()))


def test_every_operation_is_asked_below(documented: BaseSchema) -> None:
    found = {(one.ok().method.upper(), one.ok().path) for one in documented.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_as_documented(documented: BaseSchema, method: str, path: str, mode: GenerationMode) -> None:
    operation: APIOperation = documented[path][method]

    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Case) -> None:
        case.call_and_validate()

    asked()
