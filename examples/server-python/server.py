"""Counts, greets and echoes over HTTP, server-sent events and a WebSocket."""
import asyncio
import os

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

app = FastAPI()


@app.get("/ping")  # 200 once requests may come; 204 while it still loads
def ping():
    return {"status": "healthy"}


@app.get("/")
def hello(name: str = "World"):
    return {"message": f"Hello, {name}!"}


@app.get("/count")
def count(to: int = 5):
    async def numbers():
        for number in range(to):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.1)

    return StreamingResponse(numbers(), media_type="text/event-stream")


@app.websocket("/echo")
async def echo(socket: WebSocket):
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        pass


if __name__ == "__main__":
    host = os.environ.get("HOST", "127.0.0.1")  # 0.0.0.0 in a container
    uvicorn.run(app, host=host, port=int(os.environ.get("PORT", "8000")))
