// Records the microphone as WAV, 16 bits, one channel, at the rate that the browser has.
export class Recorder {
  static async start() {
    const one = new Recorder();
    one.stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    one.context = new AudioContext();
    await one.context.audioWorklet.addModule("/static/study/worklet.js");
    one.node = new AudioWorkletNode(one.context, "keep");
    one.parts = [];
    one.node.port.onmessage = (event) => one.parts.push(event.data);
    one.context.createMediaStreamSource(one.stream).connect(one.node);
    return one;
  }

  async stop() {
    for (const track of this.stream.getTracks()) track.stop();
    const rate = this.context.sampleRate;
    await this.context.close();
    const count = this.parts.reduce((sum, part) => sum + part.length, 0);
    const bytes = new DataView(new ArrayBuffer(44 + 2 * count));
    const text = (at, word) => [...word].forEach((sign, place) => bytes.setUint8(at + place, sign.charCodeAt(0)));
    text(0, "RIFF"); bytes.setUint32(4, 36 + 2 * count, true); text(8, "WAVEfmt ");
    bytes.setUint32(16, 16, true); bytes.setUint16(20, 1, true); bytes.setUint16(22, 1, true);
    bytes.setUint32(24, rate, true); bytes.setUint32(28, 2 * rate, true); bytes.setUint16(32, 2, true); bytes.setUint16(34, 16, true);
    text(36, "data"); bytes.setUint32(40, 2 * count, true);
    let at = 44;
    for (const part of this.parts) for (const value of part) { bytes.setInt16(at, Math.max(-1, Math.min(1, value)) * 32767, true); at += 2; }
    return new Blob([bytes.buffer], { type: "audio/wav" });
  }
}
