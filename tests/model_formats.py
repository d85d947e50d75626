"""The services' side of their wire formats, as their documentation has them: what they take, and how they answer.

Written apart from the product's side of them, so that a mistake there does not come to be a rule here. A request with a
field that the documentation does not have is refused, as the services do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

KEY = "key-of-the-test-9b1d"


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class GeminiPart(Strict):
    text: str


class GeminiContent(Strict):
    parts: list[GeminiPart]
    role: str = "user"


class GeminiThinking(Strict):
    thinkingBudget: int  # noqa: N815 - as the service writes it


class GeminiGeneration(Strict):
    temperature: float
    maxOutputTokens: int  # noqa: N815
    responseMimeType: str  # noqa: N815
    responseSchema: dict[str, Any]  # noqa: N815
    thinkingConfig: GeminiThinking | None = None  # noqa: N815


class GeminiRequest(Strict):
    contents: list[GeminiContent]
    systemInstruction: GeminiContent  # noqa: N815
    generationConfig: GeminiGeneration  # noqa: N815


class Gemini:
    """`POST /v1beta/models/MODEL:generateContent`."""

    base, model = "/v1beta", "gemini-2.5-flash"
    path = f"{base}/models/{model}:generateContent"

    def refused(self, headers: Mapping[str, str], body: bytes) -> str:
        if headers.get("x-goog-api-key") != KEY:
            return "API key not valid. Please pass a valid API key."
        asked = msgspec.json.decode(body, type=GeminiRequest)
        _within_openapi(asked.generationConfig.responseSchema)
        return "" if asked.generationConfig.responseMimeType == "application/json" else "no JSON was asked for"

    def parts(self, body: bytes) -> tuple[str, str]:
        asked = msgspec.json.decode(body, type=GeminiRequest)
        (message,) = asked.contents
        return asked.systemInstruction.parts[0].text, message.parts[0].text

    def answer(self, text: str, ended: str = "STOP") -> dict[str, Any]:
        parts = [{"text": text[:7]}, {"text": text[7:]}]
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": ended, "index": 0}
        usage = {"promptTokenCount": 14_000, "candidatesTokenCount": 40, "totalTokenCount": 14_040}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": "r1"}

    def cut_short(self, text: str) -> dict[str, Any]:
        return self.answer(text, "MAX_TOKENS")

    def withheld(self) -> dict[str, Any]:
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}}

    def error(self, status: int, text: str) -> dict[str, Any]:
        names = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        details = (
            [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
            if "API key" in text
            else []
        )
        return {"error": {"code": status, "message": text, "status": names.get(status, "INTERNAL"), "details": details}}

    wrong_key = 400


class OpenAIMessage(Strict):
    role: str
    content: str


class OpenAISchema(Strict):
    name: str
    strict: bool
    schema: dict[str, Any]


class OpenAIFormat(Strict):
    type: str
    json_schema: OpenAISchema


class OpenAIRequest(Strict):
    model: str
    messages: list[OpenAIMessage]
    response_format: OpenAIFormat
    max_completion_tokens: int
    temperature: float | None = None


class OpenAI:
    """`POST /v1/chat/completions`."""

    base, model = "/v1", "gpt-4o-mini"
    path = f"{base}/chat/completions"

    def refused(self, headers: Mapping[str, str], body: bytes) -> str:
        if headers.get("authorization") != f"Bearer {KEY}":
            return f"Incorrect API key provided: {headers.get('authorization')}."
        asked = msgspec.json.decode(body, type=OpenAIRequest)
        _within_strict(asked.response_format.json_schema.schema)
        return "" if asked.model == self.model else f"The model {asked.model!r} does not exist"

    def parts(self, body: bytes) -> tuple[str, str]:
        system, user = msgspec.json.decode(body, type=OpenAIRequest).messages
        assert (system.role, user.role) == ("system", "user")
        return system.content, user.content

    def answer(self, text: str, ended: str = "stop") -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ended}
        usage = {"prompt_tokens": 14_000, "completion_tokens": 40, "total_tokens": 14_040}
        about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_796_000_000, "model": self.model}
        return {**about, "choices": [choice], "usage": usage, "system_fingerprint": "fp_1"}

    def cut_short(self, text: str) -> dict[str, Any]:
        return self.answer(text, "length")

    def withheld(self) -> dict[str, Any]:
        found = self.answer("")
        found["choices"][0]["message"] |= {"content": None, "refusal": "I can't help with that."}
        return found

    def error(self, status: int, text: str) -> dict[str, Any]:
        return {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}

    wrong_key = 401


class AnthropicTool(Strict):
    name: str
    input_schema: dict[str, Any]
    description: str = ""


class AnthropicChoice(Strict):
    type: str
    name: str
    disable_parallel_tool_use: bool = False


class AnthropicRequest(Strict):
    model: str
    max_tokens: int
    messages: list[OpenAIMessage]
    system: str
    tools: list[AnthropicTool]
    tool_choice: AnthropicChoice
    temperature: float = 1.0


class Anthropic:
    """`POST /v1/messages`."""

    base, model = "/v1", "claude-haiku-4-5"
    path = f"{base}/messages"

    def refused(self, headers: Mapping[str, str], body: bytes) -> str:
        if headers.get("x-api-key") != KEY:
            return "invalid x-api-key"
        if headers.get("anthropic-version") != "2023-06-01":
            return "anthropic-version: header is required"
        asked = msgspec.json.decode(body, type=AnthropicRequest)
        named = [tool.name for tool in asked.tools] == [asked.tool_choice.name]
        return "" if named and asked.tool_choice.type == "tool" else "tool_choice names no tool"

    def parts(self, body: bytes) -> tuple[str, str]:
        asked = msgspec.json.decode(body, type=AnthropicRequest)
        (message,) = asked.messages
        assert message.role == "user"
        return asked.system, message.content

    def answer(self, text: str, ended: str = "tool_use") -> dict[str, Any]:
        """A model's text is the tool's input here, and so always JSON; what is none comes as a text block."""
        try:
            called: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "judgement"}
            block = {**called, "input": json.loads(text)}
        except ValueError:
            block, ended = {"type": "text", "text": text}, "end_turn"
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "stop_sequence": None}
        usage = {"input_tokens": 14_000, "output_tokens": 40}
        return {**about, "content": [block], "stop_reason": ended, "usage": usage}

    def cut_short(self, text: str) -> dict[str, Any]:
        return self.answer(text, "max_tokens")

    def withheld(self) -> dict[str, Any]:
        return {**self.answer("no"), "stop_reason": "refusal"}

    def error(self, status: int, text: str) -> dict[str, Any]:
        kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": text}, "request_id": "q1"}

    wrong_key = 401


Format = Gemini | OpenAI | Anthropic
FORMATS: dict[str, Format] = {"gemini": Gemini(), "openai": OpenAI(), "anthropic": Anthropic()}


def _within_openapi(schema: Mapping[str, Any]) -> None:
    """What `responseSchema` takes of OpenAPI: types in capitals, no word on further properties."""
    assert set(schema) <= {"type", "properties", "required", "items", "enum", "description", "nullable"}
    assert schema["type"] in ("OBJECT", "ARRAY", "STRING", "NUMBER", "INTEGER", "BOOLEAN")
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        _within_openapi(inner)


def _within_strict(schema: Mapping[str, Any]) -> None:
    """What a strict schema must say of each object: every property is required, and there are no others."""
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        _within_strict(inner)
